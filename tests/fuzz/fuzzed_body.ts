import { Buffer } from "node:buffer";
import type { Random } from "../soak/random.ts";
import type { FuzzedResource } from "./fuzzed_request.ts";
import { TEMPLATES } from "./templates.ts";
import { WORDS } from "./words.ts";

// deno-lint-ignore no-explicit-any -- a schema or value of any form
type Any = any;

/** Schemas of OpenAPI v3 by name. */
export type Schemas = ReadonlyMap<string, Any>;

const NUMBERS = [
  0,
  1,
  2,
  3,
  80,
  443,
  8080,
  -1,
  65_536,
  2 ** 31,
  2 ** 53,
  1.5,
  1e21,
];
const MAX_DEPTH = 12;
const SIZE_OF_HUGE = 3_300_000;

/** Generator of bodies: templates and objects by their schemas, and broken ones. */
export class BodyGenerator {
  readonly #random: Random;
  readonly #schemas: Schemas;
  readonly #byKind: ReadonlyMap<string, string>;

  constructor(random: Random, schemas: Schemas) {
    this.#random = random;
    this.#schemas = schemas;
    this.#byKind = new Map(
      [...schemas].flatMap(([name, schema]) =>
        (schema["x-kubernetes-group-version-kind"] ?? []).map((
          { group, version, kind }: Any,
        ) => [`${group ? `${group}/` : ""}${version}/${kind}`, name])
      ),
    );
  }

  /** Body for a resource, in the form of a content type. */
  body(resource: FuzzedResource, type: string, path: string): Uint8Array {
    const random = this.#random;
    const chance = random.next();
    if (chance < 0.005) return Buffer.alloc(SIZE_OF_HUGE, 0x61);
    if (chance < 0.02) return this.#bytes();
    const object = this.#object(resource, path);
    const value = type.includes("json-patch")
      ? this.#operations(object)
      : object;
    let text: string;
    try {
      text = JSON.stringify(value) ?? "";
    } catch {
      text = "{}";
    }
    if (type.includes("protobuf") && random.next() < 0.9) {
      return Buffer.concat([Buffer.from("k8s\0"), this.#bytes()]);
    }
    return Buffer.from(random.next() < 0.06 ? this.#broken(text) : text);
  }

  #bytes(): Uint8Array {
    return Uint8Array.from(
      { length: this.#random.below(200) },
      () => this.#random.below(256),
    );
  }

  /** Text that is not the original any longer. */
  #broken(text: string): string {
    const random = this.#random;
    const at = random.below(text.length);
    switch (random.below(7)) {
      case 0:
        return text.slice(0, at);
      case 1:
        return `${text.slice(0, at)}${random.pick(WORDS)}${text.slice(at)}`;
      case 2:
        return `${text}${text}`;
      case 3:
        return text.replace("{", '{"metadata":{"name":"a","name":"b"},');
      case 4:
        return "[".repeat(20_000);
      case 5:
        return text.replaceAll(/\d+/g, "1e999");
      default:
        return `${'{"a":'.repeat(12_000)}1${"}".repeat(12_000)}`;
    }
  }

  #object({ prefix, kind }: FuzzedResource, path: string): Any {
    const random = this.#random;
    const apiVersion = prefix.replace(/^\/apis?\//, "");
    const [, namespace, name] =
      /(?:\/namespaces\/([^/]+))?\/[^/]+(?:\/([^/]+))?(?:\/[^/]+)?$/.exec(
        path.slice(prefix.length),
      ) ?? [];
    const templates = TEMPLATES[kind] ?? [{}];
    let object: Any = {
      apiVersion,
      kind: path.endsWith("/scale")
        ? "Scale"
        : path.endsWith("/token")
        ? "TokenRequest"
        : kind,
      metadata: {
        name: name ?? random.pick(["a", "b", "web"]),
        ...namespace && { namespace },
      },
      ...structuredClone(random.pick(templates)),
    };
    if (random.next() < 0.1) {
      object.metadata = this.#metadata(object.metadata);
    }
    const schema = this.#schemas.get(
      this.#byKind.get(`${apiVersion}/${kind}`) ?? "",
    );
    const chance = random.next();
    if (schema && chance < 0.35) {
      object = { ...this.#value(schema, 0), ...object };
      const filled = random.pick(Object.keys(schema.properties ?? { spec: 0 }));
      object[filled] = this.#value(schema.properties?.[filled] ?? {}, 0);
    } else if (chance < 0.8) {
      for (let left = random.below(4); left > 0; left--) this.#change(object);
    }
    return object;
  }

  #metadata(metadata: Any): Any {
    const random = this.#random;
    return {
      ...metadata,
      ...random.pick<Any>([
        { resourceVersion: random.pick(["1", "0", "x", ""]) },
        { uid: "x" },
        { finalizers: ["coracle.dev/a", random.pick(WORDS)] },
        { generateName: random.pick(WORDS) },
        { labels: { [random.pick(WORDS)]: random.pick(WORDS) } },
        { annotations: { [random.pick(WORDS)]: random.pick(WORDS) } },
        {
          ownerReferences: [{
            apiVersion: "v1",
            kind: "ConfigMap",
            name: "a",
            uid: random.pick(["x", ""]),
            controller: true,
          }],
        },
        {
          managedFields: [{
            manager: random.pick(WORDS),
            operation: random.pick(["Apply", "Update", "x"]),
            apiVersion: "v1",
            fieldsType: "FieldsV1",
            fieldsV1: random.pick<Any>([
              { "f:a": {} },
              { "k:{": {} },
              { ".": {}, "v:1": {} },
              "x",
              null,
            ]),
          }],
        },
        { deletionTimestamp: "2026-01-01T00:00:00Z" },
        { creationTimestamp: random.pick(WORDS) },
      ]),
    };
  }

  /** Changes something inside an object. */
  #change(object: Any): void {
    const random = this.#random;
    let at = object;
    for (let depth = 0; depth < MAX_DEPTH; depth++) {
      const keys = Object.keys(at);
      const key = random.pick(keys.length > 0 ? keys : ["a"]);
      const inner = at[key];
      if (inner && typeof inner === "object" && random.next() < 0.8) {
        at = inner;
        continue;
      }
      switch (random.below(4)) {
        case 0:
          delete at[key];
          return;
        case 1:
          if (Array.isArray(at)) at.push(structuredClone(inner));
          else at[random.pick(WORDS) || "x"] = structuredClone(inner);
          return;
        default:
          at[key] = this.#any();
          return;
      }
    }
  }

  #any(): Any {
    const random = this.#random;
    return random.pick<Any>([
      null,
      true,
      {},
      [],
      [null],
      [{}],
      { a: { b: 1 } },
      random.pick(NUMBERS),
      random.pick(WORDS),
      random.pick(WORDS),
    ]);
  }

  #value(schema: Any, depth: number): Any {
    const random = this.#random;
    const [reference] = schema.allOf ?? [];
    const name = (schema.$ref ?? reference?.$ref)?.split("/").at(-1);
    if (name !== undefined) {
      const found = this.#schemas.get(name);
      return found === undefined ? {} : this.#value(found, depth);
    }
    if (random.next() < 0.02) return this.#any();
    if (schema.enum && random.next() < 0.9) return random.pick(schema.enum);
    if (schema.oneOf) return random.pick<Any>([1, "50%", "a", 1.5, "100m"]);
    switch (schema.type) {
      case "object": {
        const object: Any = {};
        if (depth >= MAX_DEPTH) return object;
        const keys = Object.keys(schema.properties ?? {});
        const share = Math.min(1, 4 / Math.max(keys.length, 1));
        for (const key of keys) {
          if (schema.required?.includes(key) || random.next() < share) {
            object[key] = this.#value(schema.properties[key], depth + 1);
          }
        }
        if (schema.additionalProperties) {
          for (let left = random.below(3); left > 0; left--) {
            object[random.pick(WORDS).slice(0, 100)] = this.#value(
              schema.additionalProperties,
              depth + 1,
            );
          }
        }
        return object;
      }
      case "array":
        return Array.from(
          { length: depth >= MAX_DEPTH ? 0 : random.below(3) },
          () => this.#value(schema.items ?? {}, depth + 1),
        );
      case "string":
        return random.pick(WORDS);
      case "integer":
      case "number":
        return random.pick(NUMBERS);
      case "boolean":
        return random.next() < 0.5;
      default:
        return this.#any();
    }
  }

  #operations(object: Any): Any {
    const random = this.#random;
    const pointers: string[] = [];
    const visit = (value: Any, pointer: string, depth: number): void => {
      pointers.push(pointer);
      if (value === null || typeof value !== "object" || depth > 5) return;
      for (const [key, inner] of Object.entries(value)) {
        visit(inner, `${pointer}/${key.slice(0, 100)}`, depth + 1);
      }
    };
    visit(object, "", 0);
    return Array.from({ length: random.below(5) }, () => ({
      op: random.pick("add add replace remove test move copy other".split(" ")),
      path: random.next() < 0.8
        ? random.pick(pointers)
        : `/${random.pick(WORDS).slice(0, 100)}/-`,
      ...random.next() < 0.5 && { from: random.pick(pointers) },
      ...random.next() < 0.8 && { value: this.#any() },
    }));
  }
}
