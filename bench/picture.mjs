/** `npm run bench:picture`. */
import { writeReport } from './report/report.mjs'

writeReport()
