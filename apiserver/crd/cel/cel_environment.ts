import type { Environment } from "@marcbachmann/cel-js";
import { celLibrary } from "./cel_library.ts";
import { registerComprehensions } from "./comprehensions.ts";
import { registerFormatFunctions } from "./format_functions.ts";
import { registerListFunctions } from "./list_functions.ts";
import { registerNetworkFunctions } from "./network_functions.ts";
import { registerQuantityFunctions } from "./quantity_functions.ts";
import { registerSemverFunctions } from "./semver_functions.ts";
import { registerStringFunctions } from "./string_functions.ts";

/** Class of durations of the CEL library. */
export type CelDuration = new (seconds: bigint, nanos: number) => object;

let environment: Environment | undefined;
let duration: CelDuration | undefined;

/** Environment with the functions of Kubernetes; callers clone it before they register anything. */
export function baseEnvironment(): Environment {
  if (environment === undefined) {
    const created = new (celLibrary().Environment)({
      enableOptionalTypes: true,
    });
    registerStringFunctions(created);
    registerListFunctions(created);
    registerComprehensions(created);
    registerQuantityFunctions(created);
    registerSemverFunctions(created);
    registerNetworkFunctions(created);
    registerFormatFunctions(created);
    environment = created;
  }
  return environment;
}

/** Duration class of the library, which does not export it; taken from a value. */
export function durationClass(): CelDuration {
  duration ??= baseEnvironment().evaluate("duration('1s')")
    .constructor as CelDuration;
  return duration;
}
