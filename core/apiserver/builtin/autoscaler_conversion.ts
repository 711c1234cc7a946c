import type { UntypedObject } from "../../api/object.ts";

/** A HorizontalPodAutoscaler in another version of autoscaling. */
export function convertAutoscaler(
  autoscaler: UntypedObject,
  apiVersion: string,
): UntypedObject {
  return { ...autoscaler, apiVersion };
}
