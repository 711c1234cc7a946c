import type { UntypedObject } from "@coracle/operator/client";

/** Names of Event fields in the core group and in events.k8s.io. */
const NAMES: readonly (readonly [core: string, events: string])[] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
];

const TO_EVENTS: ReadonlyMap<string, string> = new Map(NAMES);
const TO_CORE: ReadonlyMap<string, string> = new Map(
  NAMES.map(([core, events]) => [events, core]),
);

/** Converts an Event to another API version, which names its fields differently. */
export function convertEvent(
  event: UntypedObject,
  apiVersion: string,
): UntypedObject {
  const names = apiVersion === "v1" ? TO_CORE : TO_EVENTS;
  const fields = Object.entries(event).map(([name, value]) => [
    names.get(name) ?? name,
    value,
  ]);
  return { ...Object.fromEntries(fields), apiVersion };
}
