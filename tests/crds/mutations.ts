import type { Random } from "../soak/random.ts";

// deno-lint-ignore no-explicit-any -- schemas and values of any form
type Any = any;

const MAX_DEPTH = 8;

const NUMBERS = [0, 1, -1, 2, 65_536, 2 ** 31, 1.5, 1e21];
const TEXTS = [
  "",
  "a",
  "A b",
  "x".repeat(300),
  "1",
  "10Gi",
  "5m",
  "a.example.com",
  "https://a.example.com/b",
  "2026-01-02T03:04:05Z",
  "é😀",
  "10.0.0.1",
];
const ANY = [null, true, 0, 1.5, "a", "", [], {}, [null], [{}], { a: 1 }];

/** Object by a schema: what it requires, and some of what it allows. */
export function generated(random: Random, schema: Any, depth = 0): Any {
  if (random.next() < 0.01) return anything(random);
  if (schema.enum && random.next() < 0.95) return random.pick(schema.enum);
  if (schema["x-kubernetes-int-or-string"]) {
    return random.pick<Any>([1, "50%", "a", 80, "100m"]);
  }
  switch (schema.type) {
    case "object":
      return generatedObject(random, schema, depth);
    case "array":
      return Array.from(
        { length: depth > MAX_DEPTH ? 0 : random.below(3) },
        () => generated(random, schema.items ?? {}, depth + 1),
      );
    case "boolean":
      return random.next() < 0.5;
    case "integer":
    case "number":
      return random.next() < 0.8
        ? (schema.minimum ?? 1) + random.below(3)
        : random.pick(NUMBERS);
    case "string":
      return random.pick(TEXTS);
    default:
      return anything(random);
  }
}

function anything(random: Random): Any {
  return structuredClone(random.pick(ANY));
}

/** Object with generated fields. */
export function generatedObject(random: Random, schema: Any, depth = 0): Any {
  const object: Any = {};
  const properties = schema.properties ?? {};
  const names = Object.keys(properties);
  const share = depth > MAX_DEPTH ? 0 : Math.min(0.5, 3 / (names.length + 1));
  for (const name of names) {
    if (schema.required?.includes(name) || random.next() < share) {
      object[name] = generated(random, properties[name], depth + 1);
    }
  }
  if (typeof schema.additionalProperties === "object" && depth <= MAX_DEPTH) {
    for (let left = random.below(3); left > 0; left--) {
      object[random.pick(["a", "b", "x/y"])] = generated(
        random,
        schema.additionalProperties,
        depth + 1,
      );
    }
  }
  return object;
}

/** Copy of an object with some changes below `spec` and the other own fields. */
export function mutated(random: Random, schema: Any, object: Any): Any {
  const copy = structuredClone(object);
  for (let left = 1 + random.below(2); left > 0; left--) {
    change(random, schema, copy);
  }
  return copy;
}

function change(random: Random, root: Any, object: Any): void {
  let at = object;
  let schema = root;
  for (let depth = 0; depth <= MAX_DEPTH; depth++) {
    const properties = schema?.properties ?? {};
    const known = Object.keys(properties);
    const keys = (Array.isArray(at) ? [...at.keys()] : Object.keys(at))
      .map(String).filter((key) => depth > 0 || !IDENTITY.has(key));
    const key = random.pick(keys.length > 0 ? keys : ["spec"]);
    const inner = at[key];
    const below = Array.isArray(at)
      ? schema?.items
      : properties[key] ?? schema?.additionalProperties;
    if (inner && typeof inner === "object" && random.next() < 0.8) {
      at = inner;
      schema = below;
      continue;
    }
    switch (random.below(6)) {
      case 0:
        if (Array.isArray(at)) at.splice(Number(key), 1);
        else delete at[key];
        return;
      case 1:
        if (Array.isArray(at)) at.push(structuredClone(inner));
        else {at[random.pick(["unknownField", "__proto_", ...known])] =
            structuredClone(inner);}
        return;
      case 2:
        at[key] = anything(random);
        return;
      case 3: {
        const free = known.filter((name) =>
          !(name in at) && (depth > 0 || !IDENTITY.has(name))
        );
        if (free.length > 0 && !Array.isArray(at)) {
          const name = random.pick(free);
          at[name] = generated(random, properties[name], depth);
          return;
        }
        break;
      }
      default:
    }
    at[key] = generated(random, below ?? {}, depth);
    return;
  }
}

/** Root fields that say which object it is. */
const IDENTITY: ReadonlySet<string> = new Set([
  "apiVersion",
  "kind",
  "metadata",
]);
