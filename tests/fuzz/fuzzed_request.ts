import { Buffer } from "node:buffer";
import type { Random } from "../soak/random.ts";
import { BodyGenerator, type Schemas } from "./fuzzed_body.ts";
import { WORDS } from "./words.ts";

/** Resource of the server, as discovery has it. */
export interface FuzzedResource {
  /** Such as `/api/v1` or `/apis/apps/v1`. */
  readonly prefix: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Request of a fuzz run. */
export interface FuzzedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

const METHODS = [
  ..."GET GET GET POST POST POST PUT PUT PATCH PATCH PATCH DELETE".split(" "),
  ..."HEAD OPTIONS TRACE PROPFIND".split(" "),
];
const SUBRESOURCES =
  "status scale log exec attach portforward proxy eviction binding token approval ephemeralcontainers resize finalize nothing"
    .split(" ");
const OTHER_PATHS =
  "/ /api /api/ /api/v1 /apis /apis/apps /apis/apps/v1 /healthz /livez/ping /readyz?verbose /version /metrics /openapi/v2 /openapi/v3 /openapi/v3/apis/apps/v1 /openid/v1/jwks /.well-known/openid-configuration /logs /debug/pprof /api/v2 /apis//v1 /apis/a/b/c /%2e%2e/api // /api/v1//pods /api/v1/namespaces/%00/pods /api/v1/namespaces/default/pods/%2Fa /api/v1/watch/namespaces/default/pods/a /apis/apps/v1/watch/deployments?timeoutSeconds=1 /api/v1/namespaces/%E0%A4%A/pods /api/v1/nodes/a/proxy/metrics *"
    .split(" ");
const TYPES =
  "application/json application/json application/json application/yaml application/vnd.kubernetes.protobuf application/cbor text/plain application/json;charset=utf-8 a/b;;;"
    .split(" ");
const PATCH_TYPES =
  "application/json-patch+json application/merge-patch+json application/strategic-merge-patch+json application/apply-patch+yaml application/apply-patch+cbor"
    .split(" ");
const ACCEPTED =
  "application/json */* application/yaml application/vnd.kubernetes.protobuf application/json;as=Table;v=v1;g=meta.k8s.io,application/json application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1 application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1 application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io application/cbor text/html application/json;as=Table;v=v9 ;;, application/json;stream=watch application/json;q=x"
    .split(" ");
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  watch: ["1", "true", "false", "maybe"],
  timeoutSeconds: ["0", "1", "-1", "x", "99999999999999999999"],
  limit: ["1", "0", "-5", "x", "3"],
  continue: [
    "abc",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
  ],
  resourceVersion: ["0", "1", "7", "-1", "99999999", "x", "01"],
  resourceVersionMatch: ["Exact", "NotOlderThan", "Other"],
  labelSelector: [
    "a=b",
    "a in (b,c)",
    "!a",
    "a notin (",
    "a>1",
    "=",
    "a==b,c!=d",
  ],
  fieldSelector: [
    "metadata.name=a",
    "spec.nodeName=",
    "status.phase!=Running",
    "x=y",
    "=",
    "a\\=b=c",
  ],
  sendInitialEvents: ["true", "false", "x"],
  allowWatchBookmarks: ["true", "x"],
  fieldManager: ["tester", "", "é", "m".repeat(200)],
  force: ["true", "false", "x"],
  dryRun: ["All", "None", ""],
  fieldValidation: ["Strict", "Warn", "Ignore", "Other"],
  propagationPolicy: ["Orphan", "Foreground", "Background", "Other"],
  gracePeriodSeconds: ["0", "30", "-1", "x"],
  orphanDependents: ["true", "x"],
  ignoreStoreReadErrorWithClusterBreakingPotential: ["true"],
  shardSelector: ["shardRange(object.metadata.uid, '0x0', '0x8')", "x"],
  pretty: ["true", "x"],
  timeout: ["1s", "5", "x", "1ns"],
  tailLines: ["1", "x"],
  command: ["ls"],
  "": ["", "%", "a=b"],
};
const NAMESPACES = "default default default kube-system n1 missing".split(" ");
const NAMES = "a a b b web default x.y".split(" ");

/** Generator of requests, the same for the same random numbers. */
export class RequestGenerator {
  readonly #random: Random;
  readonly #resources: readonly FuzzedResource[];
  readonly #bodies: BodyGenerator;
  readonly #token: string;

  constructor(options: {
    readonly random: Random;
    readonly resources: readonly FuzzedResource[];
    readonly schemas: Schemas;
    readonly token: string;
  }) {
    this.#random = options.random;
    this.#resources = options.resources;
    this.#bodies = new BodyGenerator(options.random, options.schemas);
    this.#token = options.token;
  }

  /** The next request. */
  next(): FuzzedRequest {
    const random = this.#random;
    const method = random.pick(METHODS);
    const resource = random.pick(this.#resources);
    const path = this.#path(resource, method);
    const type = method === "PATCH" && random.next() < 0.9
      ? random.pick(PATCH_TYPES)
      : random.pick(TYPES);
    const bodied = method !== "GET" && method !== "HEAD" ||
      random.next() < 0.02;
    return {
      method,
      path: path + this.#query(),
      headers: this.#headers(bodied ? type : undefined),
      body: bodied && random.next() < 0.95
        ? this.#bodies.body(resource, type, path)
        : undefined,
    };
  }

  #path(resource: FuzzedResource, method: string): string {
    const random = this.#random;
    if (random.next() < 0.08) return random.pick(OTHER_PATHS);
    const { prefix, plural, namespaced } = resource;
    let path = prefix;
    if (namespaced !== (random.next() < 0.05)) {
      path += `/namespaces/${this.#name(NAMESPACES)}`;
    }
    path += `/${plural}`;
    if (method === "POST" ? random.next() < 0.15 : random.next() < 0.75) {
      path += `/${this.#name(NAMES)}`;
      if (random.next() < 0.25) path += `/${random.pick(SUBRESOURCES)}`;
      if (random.next() < 0.02) path += "/more/of/it";
    }
    return path;
  }

  #name(names: readonly string[]): string {
    return this.#random.next() < 0.05
      ? encodeURIComponent(this.#random.pick(WORDS).toWellFormed()).slice(
        0,
        4_000,
      )
      : this.#random.pick(names);
  }

  #query(): string {
    const random = this.#random;
    const names = Object.keys(PARAMETERS);
    const parts: string[] = [];
    while (random.next() < 0.35) {
      const name = random.pick(names);
      const value = random.next() < 0.05
        ? random.pick(WORDS).slice(0, 2_000).toWellFormed()
        : random.pick(PARAMETERS[name] ?? [""]);
      parts.push(`${name}=${encodeURIComponent(value)}`);
    }
    return parts.length === 0 ? "" : `?${parts.join("&")}`;
  }

  #headers(type: string | undefined): Record<string, string> {
    const random = this.#random;
    const headers: Record<string, string> = {};
    const chance = random.next();
    if (chance < 0.95) headers["authorization"] = `Bearer ${this.#token}`;
    else if (chance < 0.97) headers["authorization"] = "Bearer a.b.c";
    else if (chance < 0.98) headers["authorization"] = "Basic !!";
    if (type !== undefined && random.next() < 0.97) {
      headers["content-type"] = type;
    }
    if (random.next() < 0.5) headers["accept"] = random.pick(ACCEPTED);
    if (random.next() < 0.2) headers["accept-encoding"] = "gzip";
    if (random.next() < 0.03) {
      headers["impersonate-user"] = random.pick(
        ["ada", "system:serviceaccount:default:a", "system:anonymous"],
      );
      if (random.next() < 0.5) headers["impersonate-group"] = "team";
      if (random.next() < 0.3) headers["impersonate-extra-a%zz"] = "b";
    }
    if (random.next() < 0.02) headers["if-none-match"] = '"x"';
    if (random.next() < 0.02) headers["range"] = "bytes=0-1";
    if (random.next() < 0.02) headers["x-forwarded-for"] = "x".repeat(500);
    return headers;
  }
}

/** A request as text, for a report. */
export function describeRequest(request: FuzzedRequest): string {
  const { method, path, headers, body } = request;
  const shown = Object.entries(headers)
    .filter(([name]) => name !== "authorization")
    .map(([name, value]) => `  ${name}: ${value.slice(0, 200)}`);
  return [
    `${method} ${path.slice(0, 500)}`,
    ...shown,
    ...body === undefined ? [] : [
      `  ${body.length} bytes: ${Buffer.from(body).toString("utf8", 0, 2_000)}`,
    ],
  ].join("\n");
}
