import type { UntypedObject } from "../../core/api/object.ts";

/** Function that reads a selectable field of an object as text. */
export type FieldReader = (object: UntypedObject) => string;

/** Creates a reader of a dotted path, which returns `absent` if the field is not set. */
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

/**
 * Selectable fields by resource: `FIELD`, or `FIELD=PATH` if the path differs
 * from the name; the value of an absent field follows `?`.
 */
const FIELDS = `
pods: spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName status.phase status.podIP status.nominatedNodeName spec.hostNetwork?false spec.host=spec.nodeName status.podIPs=status.podIP
nodes: spec.unschedulable?false
namespaces: status.phase
secrets: type
services: spec.clusterIP spec.type
replicationcontrollers: status.replicas?0
jobs.batch: status.successful=status.succeeded?0
certificatesigningrequests.certificates.k8s.io: spec.signerName
events: involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason type reportingComponent
events.events.k8s.io: regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion regarding.resourceVersion regarding.fieldPath reason type reportingController
`;

const SELECTABLE: ReadonlyMap<string, ReadonlyMap<string, FieldReader>> =
  new Map(
    FIELDS.trim().split("\n").map((line) => {
      const [resource = "", fields = ""] = line.split(": ");
      return [resource, readers(fields)];
    }),
  );

function readers(fields: string): Map<string, FieldReader> {
  return new Map(
    fields.split(" ").map((text) => {
      const [, field = "", path = field, absent] =
        /^([^=?]+)(?:=([^?]+))?(?:\?(.*))?$/.exec(text) ?? [];
      return [field, reader(path, absent)];
    }),
  );
}

const NONE: ReadonlyMap<string, FieldReader> = new Map();

// An Event has one more field: its source, or else the controller that reports it.
const component = reader("source.component");
const reporter = reader("reportingComponent");
const EVENT_FIELDS: ReadonlyMap<string, FieldReader> = new Map([
  ...SELECTABLE.get("events") ?? NONE,
  ["source", (event) => component(event) || reporter(event)],
]);

/** Selectable fields of a resource, besides name and namespace. */
export function selectableFieldsOf(
  resource: string,
): ReadonlyMap<string, FieldReader> {
  return resource === "events"
    ? EVENT_FIELDS
    : SELECTABLE.get(resource) ?? NONE;
}
