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

function readers(fields: readonly string[]): Map<string, FieldReader> {
  return new Map(
    fields.map((text) => {
      const [, field = "", path = field, absent] =
        /^([^=?]+)(?:=([^?]+))?(?:\?(.*))?$/.exec(text) ?? [];
      return [field, reader(path, absent)];
    }),
  );
}

// An Event has one more field: its source, or else the controller that reports it.
const component = reader("source.component");
const reporter = reader("reportingComponent");
const eventSource: FieldReader = (event) => component(event) || reporter(event);

/** Readers of the selectable fields of a resource, as in its data. */
export function selectableFieldsOf(
  resource: string,
  fields: readonly string[],
): ReadonlyMap<string, FieldReader> {
  const found = readers(fields);
  return resource === "events" ? found.set("source", eventSource) : found;
}
