import { resolveOptions } from "../../core/api/options.ts";
import {
  PROBE_OPTIONS,
  type ProbeOptions,
  type ProbeSettings,
} from "../../core/operator/probe_options.ts";

/** Options of a probe server with their defaults, as an operator gives them. */
export function probeSettings(options: ProbeOptions): ProbeSettings {
  return resolveOptions(options, PROBE_OPTIONS) as ProbeSettings;
}
