import type { Container, Pod } from "../../../core/kinds/core_v1.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";

type ContainerList = "containers" | "initContainers";

const LISTS: readonly ContainerList[] = ["containers", "initContainers"];
/** Metadata that a client may not change by the subresource `resize`. */
const KEPT = [
  "labels",
  "annotations",
  "finalizers",
  "ownerReferences",
  "deletionTimestamp",
] as const;

/** Whether the containers of a list have the same names in the same order. */
function sameNames(pod: Pod, live: Pod, list: ContainerList): boolean {
  const names = ({ spec }: Pod) => spec[list]?.map(({ name }) => name) ?? [];
  return jsonEquals(names(pod), names(live));
}

/**
 * Drops all changes that an update of `pods/resize` must not make, which are
 * all but those of resources and resize policies.
 */
export function keepResize(pod: Pod, live: Pod): void {
  const count = ({ spec }: Pod) => LISTS.map((list) => spec[list]?.length ?? 0);
  // What is wrong with the containers is reported by the validation.
  if (!jsonEquals(count(pod), count(live))) return;
  const spec: Pod["spec"] = { ...live.spec };
  if (pod.spec.resources) spec.resources = pod.spec.resources;
  else delete spec.resources;
  for (const list of LISTS) {
    const containers = pod.spec[list];
    if (containers === undefined) continue;
    spec[list] = sameNames(pod, live, list)
      ? containers.map(({ resources, resizePolicy }, index) => ({
        ...live.spec[list]?.[index] as Container,
        ...resources === undefined ? {} : { resources },
        ...resizePolicy === undefined ? {} : { resizePolicy },
      }))
      : containers;
  }
  pod.spec = spec;
  if (live.status) pod.status = live.status;
  const metadata = pod.metadata as unknown as Record<string, unknown>;
  for (const name of KEPT) {
    const value = live.metadata[name];
    if (value === undefined) delete metadata[name];
    else metadata[name] = value;
  }
}
