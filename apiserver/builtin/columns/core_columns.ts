import type { UntypedObject } from "../../../core/api/object.ts";
import type {
  ComponentStatus,
  ConfigMap,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  ResourceQuota,
  Secret,
  ServiceAccount,
} from "../../../core/kinds/core_v1.ts";
import { humanAge } from "../../human_duration.ts";
import { convertEvent } from "../event_conversion.ts";
import { ageOf, nameOf, type Printer } from "./cell_text.ts";

/** Printers of the other kinds of the core group. */
export const CORE_COLUMNS: Readonly<Record<string, Printer>> = {
  namespaces: (object: Namespace, now) => [
    nameOf(object),
    object.status?.phase ?? "",
    ageOf(object, now),
  ],
  configmaps: (object: ConfigMap, now) => [
    nameOf(object),
    sizeOf(object.data) + sizeOf(object.binaryData),
    ageOf(object, now),
  ],
  secrets: (object: Secret, now) => [
    nameOf(object),
    object.type ?? "",
    sizeOf(object.data),
    ageOf(object, now),
  ],
  serviceaccounts: (object: ServiceAccount, now) => [
    nameOf(object),
    object.secrets?.length ?? 0,
    ageOf(object, now),
  ],
  resourcequotas: quotaCells,
  nodes: nodeCells,
  persistentvolumes: volumeCells,
  persistentvolumeclaims: claimCells,
  componentstatuses: componentCells,
  events: eventCells,
  "events.events.k8s.io": eventCells,
};

function sizeOf(entries: object | undefined): number {
  return Object.keys(entries ?? {}).length;
}

function quotaCells(object: ResourceQuota, now: number): readonly unknown[] {
  const { hard = {}, used = {} } = object.status ?? {};
  const requests: string[] = [];
  const limits: string[] = [];
  for (const resource of Object.keys(hard).sort()) {
    const list = resource.startsWith("limits.") ? limits : requests;
    list.push(`${resource}: ${used[resource] ?? "0"}/${hard[resource]}`);
  }
  return [
    nameOf(object),
    ageOf(object, now),
    requests.join(", "),
    limits.join(", "),
  ];
}

const ROLE_PREFIX = "node-role.kubernetes.io/";
const ROLE_LABEL = "kubernetes.io/role";

function nodeCells(object: Node, now: number): readonly unknown[] {
  const { status } = object;
  const info = status?.nodeInfo;
  const address = (type: string) =>
    status?.addresses?.find((address) => address.type === type)?.address ??
      "<none>";
  return [
    nameOf(object),
    nodeStatus(object),
    nodeRoles(object) || "<none>",
    ageOf(object, now),
    info?.kubeletVersion ?? "",
    address("InternalIP"),
    address("ExternalIP"),
    info?.osImage || "<unknown>",
    info?.kernelVersion || "<unknown>",
    info?.containerRuntimeVersion || "<unknown>",
  ];
}

function nodeStatus({ spec, status }: Node): string {
  const ready = status?.conditions?.findLast(({ type }) => type === "Ready");
  const state = ready === undefined
    ? "Unknown"
    : ready.status === "True"
    ? "Ready"
    : "NotReady";
  return spec?.unschedulable ? `${state},SchedulingDisabled` : state;
}

function nodeRoles({ metadata }: Node): string {
  const roles = Object.entries(metadata.labels ?? {}).map(([key, value]) => {
    if (key.startsWith(ROLE_PREFIX)) return key.slice(ROLE_PREFIX.length);
    return key === ROLE_LABEL ? value : "";
  });
  return [...new Set(roles)].filter((role) => role !== "").sort().join(",");
}

const ACCESS_MODES: readonly (readonly [mode: string, short: string])[] = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
];

function accessModes(modes: readonly string[] | undefined): string {
  return ACCESS_MODES.filter(([mode]) => modes?.includes(mode))
    .map(([, short]) => short)
    .join(",");
}

const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

function classOf(
  { metadata, spec }: PersistentVolume | PersistentVolumeClaim,
): string {
  return metadata.annotations?.[CLASS_ANNOTATION] ??
    spec?.storageClassName ?? "";
}

function phaseOf(
  { metadata, status }: PersistentVolume | PersistentVolumeClaim,
): string {
  return metadata.deletionTimestamp ? "Terminating" : status?.phase ?? "";
}

function volumeCells(
  object: PersistentVolume,
  now: number,
): readonly unknown[] {
  const { spec = {}, status = {} } = object;
  const { claimRef } = spec;
  return [
    nameOf(object),
    spec.capacity?.["storage"] ?? "0",
    accessModes(spec.accessModes),
    spec.persistentVolumeReclaimPolicy ?? "",
    phaseOf(object),
    claimRef ? `${claimRef.namespace ?? ""}/${claimRef.name ?? ""}` : "",
    classOf(object),
    spec.volumeAttributesClassName ?? "<unset>",
    status.reason ?? "",
    ageOf(object, now),
    spec.volumeMode ?? "<unset>",
  ];
}

function claimCells(
  object: PersistentVolumeClaim,
  now: number,
): readonly unknown[] {
  const { spec = {}, status = {} } = object;
  const isBound = Boolean(spec.volumeName);
  return [
    nameOf(object),
    phaseOf(object),
    spec.volumeName ?? "",
    isBound ? status.capacity?.["storage"] ?? "0" : "",
    isBound ? accessModes(status.accessModes) : "",
    classOf(object),
    spec.volumeAttributesClassName ?? "<unset>",
    ageOf(object, now),
    spec.volumeMode ?? "<unset>",
  ];
}

function componentCells(object: ComponentStatus): readonly unknown[] {
  const healthy = object.conditions?.find(({ type }) => type === "Healthy");
  const status = healthy === undefined
    ? "Unknown"
    : healthy.status === "True"
    ? "Healthy"
    : "Unhealthy";
  return [
    nameOf(object),
    status,
    healthy?.message ?? "",
    healthy?.error ?? "",
  ];
}

/** Table cells of an Event of the core group or events.k8s.io. */
function eventCells(object: UntypedObject, now: number): readonly unknown[] {
  const event = convertEvent(object, "v1") as unknown as Event;
  const { involvedObject: about, series, source } = event;
  const first = humanAge(event.firstTimestamp || event.eventTime, now);
  const last = series
    ? humanAge(series.lastObservedTime, now)
    : event.lastTimestamp
    ? humanAge(event.lastTimestamp, now)
    : first;
  const kind = (about.kind ?? "").toLowerCase();
  const component = source?.component || event.reportingComponent || "";
  const instance = source?.host || event.reportingInstance;
  return [
    last,
    event.type ?? "",
    event.reason ?? "",
    about.name ? `${kind}/${about.name}` : kind,
    about.fieldPath ?? "",
    instance ? `${component}, ${instance}` : component,
    (event.message ?? "").trim(),
    first,
    series ? series.count ?? 0 : event.count || 1,
    nameOf(event),
  ];
}
