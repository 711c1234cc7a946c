import type { StatusCause } from "../../../core/api/api_error.ts";
import type {
  Container,
  Pod,
  ResourceRequirements,
} from "../../../core/kinds/core_v1.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import { FieldPath } from "../../validation/field_path.ts";
import { qosClassOf } from "./pod_qos.ts";

type ContainerList = "containers" | "initContainers";

const LISTS: readonly ContainerList[] = ["containers", "initContainers"];
/** Metadata that a client may not change through the subresource. */
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
 * Drops all that an update of `pods/resize` does not change: all but resources and
 * resize policies.
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

/** Resources without amounts of CPU and memory. */
function fixedPart(resources: ResourceRequirements = {}): unknown {
  const others = (amounts: Readonly<Record<string, unknown>> = {}) =>
    Object.entries(amounts).filter(([name]) =>
      name !== "cpu" && name !== "memory"
    ).sort();
  const { limits, requests, claims = [] } = resources;
  return [others(limits), others(requests), claims];
}

/** Container without what a resize may change. */
function fixedContainer({ resources, ...rest }: Container): unknown {
  return [rest, fixedPart(resources)];
}

/** Causes why an update of `pods/resize` is refused. */
export function resizeCauses(pod: Pod, live: Pod): StatusCause[] {
  const causes: StatusCause[] = [];
  const whole = new FieldPath("", causes);
  if (live.metadata.annotations?.["kubernetes.io/config.mirror"]) {
    whole.forbidden("", "static pods cannot be resized");
    return causes;
  }
  if (live.spec.os?.name === "windows") {
    whole.forbidden("", "windows pods cannot be resized");
    return causes;
  }
  const spec = whole.child("spec");
  const quality = live.status?.qosClass ?? qosClassOf(live);
  if (quality !== qosClassOf(pod)) {
    const why = "Pod QOS Class may not change as a result of resizing";
    spec.invalid("", quality, why);
  }
  const running = live.status?.containerStatuses?.find(({ state }) =>
    state?.running
  );
  if (running && running.resources === undefined) {
    spec.forbidden("", "Pod running on node without support for resize");
  }
  checkPodLevel(pod, live, spec);
  const unordered = LISTS.filter((list) => !sameNames(pod, live, list));
  for (const list of unordered) reportOrder(pod, live, { list, spec });
  if (unordered.length > 0) return causes;
  for (const list of [...LISTS].reverse()) {
    for (const [index, container] of (live.spec[list] ?? []).entries()) {
      const at = spec.child(`${list}[${index}].resources`);
      const after = pod.spec[list]?.[index]?.resources;
      checkRemoved(after, container.resources, { at, what: "resource" });
    }
  }
  for (const [index, container] of pod.spec.containers.entries()) {
    const before = live.spec.containers[index] as Container;
    if (!jsonEquals(fixedContainer(container), fixedContainer(before))) {
      spec.forbidden("", "only cpu and memory resources are mutable");
    }
  }
  for (const [index, container] of (pod.spec.initContainers ?? []).entries()) {
    const before = live.spec.initContainers?.[index] as Container;
    const at = spec.child(`initContainers[${index}]`);
    if (!jsonEquals(fixedContainer(container), fixedContainer(before))) {
      at.forbidden(
        "",
        "only cpu and memory resources for init or sidecar containers are mutable",
      );
    }
  }
  return causes;
}

function reportOrder(
  pod: Pod,
  live: Pod,
  { list, spec }: { readonly list: ContainerList; readonly spec: FieldPath },
): void {
  const before = live.spec[list] ?? [];
  const after = pod.spec[list] ?? [];
  if (before.length !== after.length) {
    spec.forbidden(list, `${list} may not be added or removed on resize`);
    return;
  }
  for (const [index, { name }] of before.entries()) {
    if (after[index]?.name === name) continue;
    spec.forbidden(
      `${list}[${index}].name`,
      `${list} may not be renamed or reordered on resize`,
    );
  }
}

function checkPodLevel(pod: Pod, live: Pod, spec: FieldPath): void {
  const { resources: before } = live.spec;
  const { resources: after } = pod.spec;
  if (before !== undefined && after === undefined) {
    spec.forbidden("resources", "pod-level resources cannot be removed");
    return;
  }
  const at = spec.child("resources");
  checkRemoved(after, before, { at, what: "pod-level resource" });
  if (!jsonEquals(fixedPart(after), fixedPart(before))) {
    const why = "only cpu and memory resources are mutable at pod-level";
    spec.forbidden("", why);
  }
}

function checkRemoved(
  after: ResourceRequirements = {},
  before: ResourceRequirements = {},
  { at, what }: { readonly at: FieldPath; readonly what: string },
): void {
  for (const part of ["requests", "limits"] as const) {
    const left = after[part] ?? {};
    const removed = Object.keys(before[part] ?? {}).some((name) =>
      !Object.hasOwn(left, name)
    );
    if (removed) at.forbidden(part, `${what} ${part} cannot be removed`);
  }
}
