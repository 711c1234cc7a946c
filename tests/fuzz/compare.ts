/**
 * Sends the same random requests to the embedded API server and to a real control
 * plane, and prints the requests whose answers differ in their status, the first one
 * of each kind, and how many there were. Exits with 1 if there are any.
 *
 * `npm run test:fuzz:compare -- --requests 6000 --seed 1`; `--messages` compares
 * the messages of failures, too. Each change of the one state that the other
 * refuses makes later answers differ as well: the first ones count.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import * as http from "node:http";
import * as https from "node:https";
import process from "node:process";
import { loadConfig } from "@coracle/operator/client";
import { CONTROLLERS, startControlPlane } from "../cluster/control_plane.ts";
import { Random } from "../soak/random.ts";
import { commandLine } from "../support/command_line.ts";
import { until } from "../support/until.ts";
import { FuzzTarget } from "./fuzz_run.ts";
import {
  describeRequest,
  type FuzzedRequest,
  RequestGenerator,
} from "./fuzzed_request.ts";
import { TEMPLATES } from "./templates.ts";

/** Limit of an answer in milliseconds; a watch is cut after a moment. */
const ANSWER_LIMIT_MS = 8_000;
const WATCH_MS = 50;
/** What the embedded server does not serve, or answers by another state. */
const APART =
  /^\/debug\/pprof|^\/metrics|^\/openid\/|^\*|\/proxy|[?&](timeout=1ns|continue=)|^\/(livez|readyz)/;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const EDIT = "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit";

const { values, integer } = commandLine("compare servers", {
  requests: { type: "string", default: "6000" },
  seed: { type: "string", default: "1" },
  messages: { type: "boolean", default: false },
});
const requests = integer("requests", 1);
const seed = integer("seed");
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Answer of one server. */
interface Answer {
  /** Status code, or what happened instead. */
  readonly status: string;
  readonly text: string;
}

/** Server, and the credentials that replace those of a request. */
interface Server {
  readonly url: URL;
  readonly token: string;
  readonly agent: http.Agent;
}

function send(
  { url, token, agent }: Server,
  { method, path, headers, body }: FuzzedRequest,
  known: string,
): Promise<Answer> {
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((resolve) => {
    const end = (status: string, text = "") => {
      clearTimeout(limit);
      resolve({ status, text });
    };
    const sent = request({
      host: url.hostname,
      port: url.port,
      method,
      path,
      agent,
      headers: {
        ...headers,
        ...headers["authorization"] === `Bearer ${known}` &&
          { authorization: `Bearer ${token}` },
        ...body && { "content-length": body.length },
      },
    }, (response) => {
      const status = String(response.statusCode);
      const parts: Uint8Array[] = [];
      const done = () => end(status, Buffer.concat(parts).toString());
      response.on("data", (part: Uint8Array) => parts.push(part));
      for (const event of ["end", "close", "error"]) response.on(event, done);
      if (/[?&]watch=(1|true)|\/watch\//.test(path)) {
        setTimeout(() => {
          done();
          response.destroy();
        }, WATCH_MS);
      }
    });
    const limit = setTimeout(() => {
      end("no answer");
      sent.destroy();
    }, ANSWER_LIMIT_MS);
    sent.on("error", (error) => end(error.message));
    sent.end(body);
  });
}

/** Message of a failure without names and numbers. */
function shape({ text }: Answer): string {
  const message = /"message":\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text;
  return message.replaceAll(/\\"[^"]*\\"|"[^"]*"/g, "…")
    .replaceAll(/\d+/g, "N").replaceAll(/\s+/g, " ").slice(0, 120);
}

const plane = await startControlPlane({
  // Otherwise the roles view and edit, which requests bind, have no rules there.
  controllers: [...CONTROLLERS, "clusterrole-aggregation-controller"],
});
if (plane === undefined) {
  print("Cannot compare servers: there is no real control plane");
  process.exit(2);
}
const target = await FuzzTarget.start({
  seed,
  isSimulated: false,
  onError: () => {},
});
const groups = new Map<string, number>();
let compared = 0;
try {
  const { server, certificateAuthority, credentials } = await loadConfig({
    kubeconfig: plane.kubeconfig,
  });
  const { token = "" } = credentials !== undefined && "current" in credentials
    ? await credentials.current()
    : credentials ?? {};
  const ours: Server = {
    url: new URL(target.url),
    token: target.token,
    agent: new http.Agent({ keepAlive: true }),
  };
  const real: Server = {
    url: new URL(server),
    token,
    agent: new https.Agent({
      keepAlive: true,
      ca: certificateAuthority as string,
    }),
  };
  const [definition] = TEMPLATES["CustomResourceDefinition"] ?? [];
  const crd = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    ...definition,
  };
  const headers = {
    authorization: `Bearer ${target.token}`,
    "content-type": "application/json",
  };
  const made = await send(real, {
    method: "POST",
    path: CRDS,
    headers,
    body: Buffer.from(JSON.stringify(crd)),
  }, target.token);
  if (made.status !== "201") throw new Error(`The CRD: ${made.text}`);
  const boats = target.resources.find(({ kind }) => kind === "Boat");
  const read = (path: string) =>
    send(
      real,
      { method: "GET", path, headers, body: undefined },
      target.token,
    );
  await until(
    "the custom resource is served",
    async () =>
      (await read(`${boats?.prefix}/${boats?.plural}`)).status === "200",
  );
  await until(
    "the role edit has rules",
    async () => JSON.parse((await read(EDIT)).text).rules?.length > 0,
  );
  const generator = new RequestGenerator({
    random: new Random(seed),
    ...target,
  });
  for (let number = 0; number < requests; number++) {
    const request = generator.next();
    if (APART.test(request.path)) continue;
    const [own, other] = await Promise.all([
      send(ours, request, target.token),
      send(real, request, target.token),
    ]);
    compared++;
    const isSame = own.status === other.status &&
      (!values.messages || own.status < "400" || shape(own) === shape(other));
    if (isSame) continue;
    const key = `${own.status} ${shape(own)}\n  real: ${other.status} ${
      shape(other)
    }`;
    const count = groups.get(key) ?? 0;
    groups.set(key, count + 1);
    if (count === 0) print(`${number} ${describeRequest(request)}\n  ${key}\n`);
  }
} finally {
  await target.stop();
  await plane.stop();
}
const sorted = [...groups].toSorted(([, a], [, b]) => b - a);
for (const [key, count] of sorted) print(`${count} × ${key}`);
const differing = sorted.reduce((sum, [, count]) => sum + count, 0);
print(`${differing} of ${compared} answers differ, seed ${seed}`);
process.exit(differing > 0 ? 1 : 0);
