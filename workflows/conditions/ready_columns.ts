import type { PrinterColumn } from "../../core/crd/kind_definition.ts";

function ofReady(name: string, field: string): PrinterColumn {
  const jsonPath = `.status.conditions[?(@.type=="Ready")].${field}`;
  return { name, type: "string", jsonPath };
}

/**
 * The columns of `kubectl get` for a kind whose conditions tell whether its
 * objects are ready: Ready, Reason and Age, for `printerColumns` of `defineKind`.
 */
export const readyColumns: readonly PrinterColumn[] = Object.freeze([
  ofReady("Ready", "status"),
  ofReady("Reason", "reason"),
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
]);
