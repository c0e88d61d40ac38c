/** Properties are tried with the same values in every run; `PAWL_PROPERTY_SEED=N npm test` tries others. */
import { configureGlobal } from 'fast-check'

configureGlobal({ seed: Number(process.env.PAWL_PROPERTY_SEED ?? 1) })
