import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { Random } from "./random.ts";

/**
 * Any number of Pods, derived from real ones in `bench/data`. Everything that
 * differs in a cluster differs here, or compression would look too good: names,
 * UIDs, hashes, digests, container IDs, addresses, nodes and times. Pods of one
 * ReplicaSet share the rest, as in a cluster.
 *
 * @module
 */

/** Alphabet of random suffixes in Kubernetes. */
const NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const HEX = "0123456789abcdef";
/** Number of Pods of one ReplicaSet. */
const REPLICAS = 8;
const PODS_PER_NODE = 60;

/** Variable part of a Pod. */
type Variable =
  | "app"
  | "templateHash"
  | "ownerUid"
  | "checksum"
  | "digest"
  | "namespace"
  | "suffix"
  | "uid"
  | "version"
  | "containerId"
  | "volume"
  | "podIp"
  | "hostIp"
  | "node"
  | "created"
  | "time";

/** Text of a Pod, split at its variable parts. */
interface Template {
  readonly parts: readonly (string | Variable)[];
}

interface PodShape {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { readonly uid: string }[];
  };
  readonly spec: { readonly nodeName?: string };
  readonly status: { readonly podIP?: string; readonly hostIP?: string };
}

const TIME_REGEXP = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/;
const CREATED_REGEXP = /(?<="creationTimestamp":")\d{4}-\d\d-\d\dT[^"]+/;
const PATTERNS: readonly (readonly [RegExp, Variable])[] = [
  [/(?<=checksum\/config":")[0-9a-f]{64}/, "checksum"],
  [/(?<=sha256:)[0-9a-f]{64}/, "digest"],
  [/(?<=containerd:\/\/)[0-9a-f]{64}/, "containerId"],
  [/(?<=kube-api-access-)[a-z0-9]{5}/, "volume"],
  [CREATED_REGEXP, "created"],
  [TIME_REGEXP, "time"],
];

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function makeTemplate(text: string): Template {
  const { metadata, spec, status } = JSON.parse(text) as PodShape;
  const labels = metadata.labels ?? {};
  const literal: [string | undefined, Variable][] = [
    [metadata.uid, "uid"],
    [metadata.ownerReferences?.[0]?.uid, "ownerUid"],
    [metadata.name.split("-").at(-1), "suffix"],
    [labels["pod-template-hash"], "templateHash"],
    [spec.nodeName, "node"],
    [status.podIP, "podIp"],
    [status.hostIP, "hostIp"],
    [labels["app"], "app"],
  ];
  const patterns: (readonly [RegExp, Variable])[] = [
    [
      new RegExp(`(?<="resourceVersion":")${metadata.resourceVersion}`),
      "version",
    ],
    [new RegExp(`(?<=")${escaped(metadata.namespace)}(?=")`), "namespace"],
    ...literal.flatMap(([value, variable]) =>
      value ? [[new RegExp(escaped(value)), variable] as const] : []
    ),
    ...PATTERNS,
  ];
  const any = new RegExp(
    patterns.map(([{ source }]) => `(${source})`).join("|"),
    "g",
  );
  const parts: (string | Variable)[] = [];
  let end = 0;
  for (const match of text.matchAll(any)) {
    const index = match.slice(1).findIndex((group) => group !== undefined);
    parts.push(text.slice(end, match.index), patterns[index]?.[1] ?? "");
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return { parts };
}

function timeText(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z/, "Z");
}

/** Options of {@linkcode PodFactory}. */
export interface PodFactoryOptions {
  /** Whether to leave out managedFields, as a cache that prunes them does. */
  readonly pruned?: boolean;
}

/** Generator of Pods by number: equal numbers give equal Pods. */
export class PodFactory {
  readonly #templates: readonly Template[];

  constructor(options: PodFactoryOptions = {}) {
    const file = new URL("../data/pods.ndjson", import.meta.url);
    this.#templates = readFileSync(file, "utf8").trim().split("\n")
      .filter((text) => text.includes('"ReplicaSet"'))
      .map((text) => {
        if (!options.pruned) return text;
        const pod = JSON.parse(text);
        delete pod.metadata.managedFields;
        return JSON.stringify(pod);
      })
      .map(makeTemplate);
  }

  /**
   * JSON text of a Pod.
   *
   * @param number Number of the Pod.
   * @param version Its resourceVersion; another version has other times, except
   * for the creation time.
   */
  text(number: number, version: number = number + 1000): string {
    const workload = Math.floor(number / REPLICAS);
    const template = this.#templates[workload % this.#templates.length];
    if (template === undefined) throw new RangeError(`No Pod ${number}`);
    const values = this.#values(number, workload, version);
    let text = "";
    template.parts.forEach((part, i) => {
      text += i % 2 === 0 ? part : values[part as Variable];
    });
    return text;
  }

  /** JSON bytes of a Pod. */
  bytes(number: number, version?: number): Buffer {
    return Buffer.from(this.text(number, version));
  }

  /** Watch event of a Pod, without the line feed. */
  event(type: string, number: number, version?: number): Buffer {
    return Buffer.from(
      `{"type":"${type}","object":${this.text(number, version)}}`,
    );
  }

  #values(
    number: number,
    workload: number,
    version: number,
  ): Record<Variable, string> {
    const shared = new Random(workload);
    const own = new Random(0x5eed ^ Math.imul(number, 2654435761));
    const node = Math.floor(number / PODS_PER_NODE);
    const uuid = (random: Random) =>
      `${random.text(HEX, 8)}-${random.text(HEX, 4)}-4${random.text(HEX, 3)}-a${
        random.text(HEX, 3)
      }-${random.text(HEX, 12)}`;
    const host = `10.${(node >> 16) & 255}.${(node >> 8) & 255}.${node & 255}`;
    return {
      app: `app-${workload.toString(36)}`,
      templateHash: shared.text(NAME_ALPHABET, 10),
      ownerUid: uuid(shared),
      checksum: shared.text(HEX, 64),
      digest: shared.text(HEX, 64),
      namespace: `team-${workload % 250}`,
      suffix: own.text(NAME_ALPHABET, 5),
      uid: uuid(own),
      version: String(version),
      containerId: own.text(HEX, 64),
      volume: own.text(NAME_ALPHABET, 5),
      podIp: `10.${own.below(256)}.${own.below(256)}.${own.below(256)}`,
      hostIp: host,
      node: `ip-${host.replaceAll(".", "-")}.eu-west-1.compute.internal`,
      created: timeText(1.78e12 + number * 1009),
      time: timeText(1.79e12 + (number + version) * 1009),
    };
  }
}
