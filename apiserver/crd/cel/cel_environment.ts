import type { Environment } from "@marcbachmann/cel-js";
import { celLibrary } from "./cel_library.ts";
import { registerFormatFunctions } from "./format_functions.ts";
import { registerListFunctions } from "./list_functions.ts";
import { registerNetworkFunctions } from "./network_functions.ts";
import { registerQuantityFunctions } from "./quantity_functions.ts";
import { registerStringFunctions } from "./string_functions.ts";

/** What the library understands by a duration of seconds and nanoseconds. */
export type CelDuration = new (seconds: bigint, nanos: number) => object;

let environment: Environment | undefined;
let duration: CelDuration | undefined;

/** An environment with Kubernetes' functions, to be cloned and added to. */
export function baseEnvironment(): Environment {
  if (environment === undefined) {
    const made = new (celLibrary().Environment)({ enableOptionalTypes: true });
    registerStringFunctions(made);
    registerListFunctions(made);
    registerQuantityFunctions(made);
    registerNetworkFunctions(made);
    registerFormatFunctions(made);
    environment = made;
  }
  return environment;
}

/** The library keeps its class of durations to itself; a value has it. */
export function durationClass(): CelDuration {
  duration ??= baseEnvironment().evaluate("duration('1s')")
    .constructor as CelDuration;
  return duration;
}
