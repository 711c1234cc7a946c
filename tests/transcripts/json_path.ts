/** A step of a path into JSON. */
type PathStep =
  | { readonly field: string }
  | { readonly index: number }
  | { readonly every: true }
  | { readonly where: string; readonly is: string };

const SYNTAX =
  /\["(?<quoted>[^"]*)"\]|\[(?<every>\*)\]|\[(?<index>-?\d+)\]|\[(?<where>[^=\]]+)=(?<is>[^\]]*)\]|(?<field>[^.[\]]+)/g;

/** Reads a path such as `items[0].metadata.labels["a/b"]` or `rows[*].cells`. */
function parse(path: string): PathStep[] {
  return [...path.matchAll(SYNTAX)].map(({ groups = {} }) => {
    const { quoted, every, index, where, is, field } = groups;
    if (quoted !== undefined) return { field: quoted };
    if (every !== undefined) return { every: true };
    if (index !== undefined) return { index: Number(index) };
    return where !== undefined
      ? { where, is: is ?? "" }
      : { field: field ?? "" };
  });
}

function child(value: unknown, step: PathStep): unknown {
  if (value === null || typeof value !== "object") return undefined;
  if ("where" in step) {
    return Array.isArray(value)
      ? value.find((item) => String(valueAt(item, step.where)) === step.is)
      : undefined;
  }
  if ("index" in step) {
    return Array.isArray(value) ? value.at(step.index) : undefined;
  }
  return "field" in step
    ? (value as Record<string, unknown>)[step.field]
    : undefined;
}

/** Value at a path; undefined where none exists. */
export function valueAt(value: unknown, path: string): unknown {
  let found = value;
  for (const step of parse(path)) {
    if ("every" in step) return found;
    found = child(found, step);
  }
  return found;
}

/** Removes the value at a path in place. */
export function removeAt(value: unknown, path: string): void {
  remove(value, parse(path));
}

function remove(value: unknown, steps: readonly PathStep[]): void {
  const [step, ...rest] = steps;
  if (step === undefined || value === null || typeof value !== "object") return;
  if ("every" in step) {
    const items = Object.values(value);
    if (rest.length > 0) { for (const item of items) remove(item, rest); }
    else {for (const name of Object.keys(value)) {
        Reflect.deleteProperty(value, name);
      }}
    return;
  }
  if (rest.length > 0) return remove(child(value, step), rest);
  if (Array.isArray(value)) {
    const index = "index" in step
      ? step.index
      : value.indexOf(child(value, step));
    if (index >= 0 && index < value.length) value.splice(index, 1);
  } else if ("field" in step) Reflect.deleteProperty(value, step.field);
}
