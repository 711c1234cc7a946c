import { type Kind, kindText } from "../../api/kind.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import type { RememberedApply } from "../run/apply_memory.ts";

/** Name of the decision that an apply is needless. */
export function needlessName(
  { id, subresource }: Pick<RememberedApply, "id" | "subresource">,
): string {
  return `needless ${id}${subresource ? " status" : ""}`;
}

/** Name of the decision that an object is read before its status is written. */
export function liveName(kind: Kind, key: ObjectKey): string {
  return `live ${kindText(kind)} ${keyText(key)}`;
}
