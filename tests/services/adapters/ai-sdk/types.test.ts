/** Held by the compiler: what the SDK's packages call a model is one to us, and what we ask with is what they take. */

import { fileURLToPath } from 'node:url'
import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV3,
  LanguageModelV3CallOptions,
} from '@ai-sdk/provider'
import type { LanguageModelV4, LanguageModelV4CallOptions } from 'ai-sdk-provider-newest'
import { expect, expectTypeOf, test } from 'vitest'
import type { AiSdkModel, CallOptions, Reasoning } from '../../../../src/services/adapters/ai-sdk/model.ts'
import { readImports } from '../../../kit/imports.ts'

test('models of every version of the specification can be given', () => {
  expectTypeOf<LanguageModelV2>().toExtend<AiSdkModel>()
  expectTypeOf<LanguageModelV3>().toExtend<AiSdkModel>()
  expectTypeOf<LanguageModelV4>().toExtend<AiSdkModel>()
})

test('what a model is asked with is what its version takes', () => {
  expectTypeOf<CallOptions<'v2'>>().toExtend<LanguageModelV2CallOptions>()
  expectTypeOf<CallOptions<'v3'>>().toExtend<LanguageModelV3CallOptions>()
  expectTypeOf<CallOptions<'v4'> & { reasoning?: Reasoning }>().toExtend<LanguageModelV4CallOptions>()
})

test('every effort of the newest version is known', () => {
  expectTypeOf<Exclude<LanguageModelV4CallOptions['reasoning'], undefined>>().toEqualTypeOf<Reasoning>()
})

test('an id of the gateway is no model', () => {
  expectTypeOf<string>().not.toExtend<AiSdkModel>()
})

test('nothing of the SDK is needed to load or to compile the adapter', () => {
  const root = fileURLToPath(new URL('../../../..', import.meta.url))
  const imported = [...readImports(root).values()].flat()
  expect(imported.filter((name) => /^(?:ai|@ai-sdk|ai-sdk)\b/.test(name))).toEqual([])
})
