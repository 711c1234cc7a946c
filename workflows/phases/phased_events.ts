import type { PrimaryEvents } from "../../core/controller/reconciler.ts";
import type { PhasedDefinition } from "./phased_definition.ts";
import type { PhasedObject } from "./rollout.ts";

/**
 * Events about an object that a listener hears of, too. What it throws is
 * dropped: a listener must not stop a rollout.
 *
 * @param object The object.
 * @param events Where they are written.
 * @param listener Who hears of them.
 */
export function heardEvents<P extends PhasedObject>(
  object: P,
  events: PrimaryEvents,
  listener: PhasedDefinition<P, unknown>["onEvent"],
): PrimaryEvents {
  if (listener === undefined) return events;
  const hear = (
    type: "Normal" | "Warning",
    reason: string,
    message: string,
  ) => {
    try {
      listener(object, { type, reason, message });
    } catch {
      // See PhasedDefinition.onEvent.
    }
  };
  return {
    normal(reason, message, options) {
      events.normal(reason, message, options);
      hear("Normal", reason, message);
    },
    warning(reason, message, options) {
      events.warning(reason, message, options);
      hear("Warning", reason, message);
    },
  };
}
