#!/usr/bin/env node
/** The `pawl` command. Everything it does stands in `cli/`; here it only starts and exits. */
import { main } from './cli/program.ts'

process.exit(await main(process.argv.slice(2)))
