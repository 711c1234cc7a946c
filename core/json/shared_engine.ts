import { ScalarEngine } from "./scalar_engine.ts";
import type { StructureEngine } from "./structure_engine.ts";
import { WasmEngine } from "./wasm_engine.ts";

let engine: StructureEngine | undefined;

/**
 * The engine that all scanners share, made when it is first needed: by
 * WebAssembly's SIMD instructions, or byte by byte where there are none.
 */
export function sharedEngine(): StructureEngine {
  return engine ??= WasmEngine.create() ?? new ScalarEngine();
}
