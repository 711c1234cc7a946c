import type { Environment } from "@marcbachmann/cel-js";
import { celLibrary, extend } from "./cel_library.ts";
import { registerComprehensions } from "./comprehensions.ts";
import { formatExtension } from "./format_functions.ts";
import { LISTS } from "./list_functions.ts";
import { NETWORKS } from "./network_functions.ts";
import { QUANTITIES } from "./quantity_functions.ts";
import { SEMVERS } from "./semver_functions.ts";
import { STRINGS } from "./string_functions.ts";

/** Class of durations of the CEL library. */
export type CelDuration = new (seconds: bigint, nanos: number) => object;

let environment: Environment | undefined;
let duration: CelDuration | undefined;

/** CEL environment with the functions of Kubernetes; callers clone it before they register anything. */
export function baseEnvironment(): Environment {
  if (environment === undefined) {
    const created = new (celLibrary().Environment)({
      enableOptionalTypes: true,
    });
    extend(created, STRINGS);
    extend(created, LISTS);
    registerComprehensions(created);
    for (const one of [QUANTITIES, SEMVERS, NETWORKS, formatExtension()]) {
      extend(created, one);
    }
    environment = created;
  }
  return environment;
}

/** Duration class of the library, taken from a value because the library does not export it. */
export function durationClass(): CelDuration {
  duration ??= baseEnvironment().evaluate("duration('1s')")
    .constructor as CelDuration;
  return duration;
}
