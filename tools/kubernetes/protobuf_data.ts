/**
 * Numbers of fields in protobuf, from the descriptions that the Go modules of
 * Kubernetes carry.
 *
 * @module
 */
import { globSync, readFileSync } from "node:fs";
import type { FieldNumbers, KubernetesData } from "./kubernetes_data.ts";

interface Field {
  readonly type: string;
  readonly name: string;
  readonly number: string;
}

const MESSAGE_REGEXP = /^message (\w+) \{\n([^]*?)^\}/gm;
const FIELD_REGEXP =
  /^ {2}(?:optional |repeated |required )?(map<[^>]*>|[\w.]+) (\w+) = (\d+);/gm;

/** The fields of every message, by the name of its OpenAPI definition. */
function readMessages(files: readonly string[]): Map<string, Field[]> {
  const messages = new Map<string, Field[]>();
  for (const file of files) {
    const text = readFileSync(file, "utf8");
    const [, name = ""] = /^package k8s\.io\.(\S+);/m.exec(text) ?? [];
    for (const [, message = "", body = ""] of text.matchAll(MESSAGE_REGEXP)) {
      const fields = [...body.matchAll(FIELD_REGEXP)].map((
        [, type = "", name = "", number = ""],
      ) => ({ type, name, number }));
      messages.set(`io.k8s.${name.replaceAll("_", "-")}.${message}`, fields);
    }
  }
  return messages;
}

/**
 * The numbers of a message's fields, by their names in JSON. A struct that Go
 * embeds is a message of its own on the wire, and no field in JSON.
 */
function fieldNumbers(
  message: string,
  messages: ReadonlyMap<string, readonly Field[]>,
  names: readonly string[],
): FieldNumbers {
  const numbers: Record<string, string | FieldNumbers> = {};
  for (const { type, name, number } of messages.get(message) ?? []) {
    const json = names.find((one) => plain(one) === plain(name));
    const embedded = message.replace(/\w+$/, type);
    const [items, ...more] = messages.get(embedded) ?? [];
    const isTexts = items?.name === "items" && items.type === "string";
    if (json !== undefined && isTexts && more.length === 0) {
      // A list with a type of its own is a message with its items.
      numbers[number] = { [items.number]: json };
    } else if (json !== undefined) numbers[number] = json;
    else if (messages.has(embedded)) {
      numbers[number] = fieldNumbers(embedded, messages, names);
    } else throw new Error(`No field of ${message} in JSON: ${name}`);
  }
  return numbers;
}

/** A name without what protobuf cannot spell: `x-kubernetes-map-type`, `$ref`. */
function plain(name: string): string {
  return name.replaceAll(/[-$]/g, "").toLowerCase();
}

/**
 * The numbers of the fields of definitions.
 *
 * @param modules The folders of `k8s.io/api`, `k8s.io/apimachinery`,
 * `k8s.io/apiextensions-apiserver` and `k8s.io/kube-aggregator`.
 */
export function readFieldNumbers(
  modules: readonly string[],
  definitions: KubernetesData["definitions"],
): Record<string, FieldNumbers> {
  const [api = "", apimachinery = "", apiextensions = "", aggregator = ""] =
    modules;
  const messages = readMessages([
    // Served kinds may have parts of versions that are not served.
    ...globSync(`${api}/*/v*/generated.proto`),
    `${apimachinery}/pkg/apis/meta/v1/generated.proto`,
    `${apiextensions}/pkg/apis/apiextensions/v1/generated.proto`,
    `${aggregator}/pkg/apis/apiregistration/v1/generated.proto`,
  ]);
  const numbers: Record<string, FieldNumbers> = {};
  for (const name of Object.keys(definitions).sort()) {
    const properties = Object.keys(definitions[name]?.properties ?? {});
    const fields = messages.get(name);
    const isEmpty = fields?.length === 0;
    if (!isEmpty && (fields === undefined || properties.length === 0)) continue;
    numbers[name] = fieldNumbers(name, messages, properties);
  }
  return numbers;
}
