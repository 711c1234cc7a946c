import type { UntypedObject } from "../../core/api/object.ts";

/** Reads a selectable field of an object as text. */
export type FieldReader = (object: UntypedObject) => string;

/** Reader of a dotted path; returns `absent` if the field is not set. */
function reader(path: string, absent = ""): FieldReader {
  const names = path.split(".");
  return (object) => {
    let value: unknown = object;
    for (const name of names) {
      value = (value as Record<string, unknown> | null | undefined)?.[name];
    }
    return value === undefined || value === null ? absent : String(value);
  };
}

function readers(
  ...paths: readonly string[]
): ReadonlyMap<string, FieldReader> {
  return new Map(paths.map((path) => [path, reader(path)]));
}

const INVOLVED = [
  "kind",
  "namespace",
  "name",
  "uid",
  "apiVersion",
  "resourceVersion",
  "fieldPath",
];

function eventFields(
  object: string,
  controller: string,
  source: string,
): ReadonlyMap<string, FieldReader> {
  const reporter = reader(controller);
  const component = reader(`${source}.component`);
  return new Map([
    ...INVOLVED.map((name): [string, FieldReader] => [
      `${object === "regarding" ? object : "involvedObject"}.${name}`,
      reader(`${object}.${name}`),
    ]),
    ["reason", reader("reason")],
    ["type", reader("type")],
    [
      object === "regarding" ? "reportingController" : "reportingComponent",
      reporter,
    ],
    ...(object === "regarding" ? [] : [
      ["source", (event: UntypedObject) => component(event) || reporter(event)],
    ] as [string, FieldReader][]),
  ]);
}

const NONE: ReadonlyMap<string, FieldReader> = new Map();

const SELECTABLE: ReadonlyMap<string, ReadonlyMap<string, FieldReader>> =
  new Map([
    [
      "pods",
      new Map([
        ...readers(
          "spec.nodeName",
          "spec.restartPolicy",
          "spec.schedulerName",
          "spec.serviceAccountName",
          "status.phase",
          "status.podIP",
          "status.nominatedNodeName",
        ),
        ["spec.hostNetwork", reader("spec.hostNetwork", "false")],
        ["spec.host", reader("spec.nodeName")],
        ["status.podIPs", reader("status.podIP")],
      ]),
    ],
    [
      "nodes",
      new Map([["spec.unschedulable", reader("spec.unschedulable", "false")]]),
    ],
    ["namespaces", readers("status.phase")],
    ["secrets", readers("type")],
    ["services", readers("spec.clusterIP", "spec.type")],
    [
      "replicationcontrollers",
      new Map([["status.replicas", reader("status.replicas", "0")]]),
    ],
    [
      "jobs.batch",
      new Map([["status.successful", reader("status.succeeded", "0")]]),
    ],
    [
      "certificatesigningrequests.certificates.k8s.io",
      readers("spec.signerName"),
    ],
    ["events", eventFields("involvedObject", "reportingComponent", "source")],
    [
      "events.events.k8s.io",
      eventFields("regarding", "reportingController", "deprecatedSource"),
    ],
  ]);

/** Selectable fields of a resource, besides name and namespace. */
export function selectableFieldsOf(
  resource: string,
): ReadonlyMap<string, FieldReader> {
  return SELECTABLE.get(resource) ?? NONE;
}
