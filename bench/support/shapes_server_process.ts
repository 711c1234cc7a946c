/**
 * Serves objects of published shapes, in a process of its own: each is generated
 * when it is sent. `shapes_server_process.ts certificates|clonesets OBJECTS`, of each
 * kind, prints its URL when it listens, and ends when its input does.
 *
 * @module
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { type Shape, SHAPES } from "./shapes.ts";

const [name = "", count] = process.argv.slice(2);
const shapes: readonly Shape[] = SHAPES[name as keyof typeof SHAPES];
const objects = Number(count);
const PER_WRITE = 16;
const HEADERS = { "content-type": "application/json" };

function basePath({ kind: { group, version } }: Shape): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

async function watch(
  response: ServerResponse,
  { kind, text }: Shape,
  isWhole: boolean,
): Promise<void> {
  response.writeHead(200, HEADERS);
  response.flushHeaders();
  for (let first = 0; isWhole && first < objects; first += PER_WRITE) {
    let lines = "";
    for (let i = first; i < Math.min(first + PER_WRITE, objects); i++) {
      lines += `{"type":"ADDED","object":${text(i)}}\n`;
    }
    if (response.write(lines)) continue;
    await new Promise((resolve) => response.once("drain", resolve));
  }
  const { group, version } = kind;
  const object = {
    kind: kind.kind,
    apiVersion: group === "" ? version : `${group}/${version}`,
    metadata: {
      resourceVersion: String(objects + 1),
      annotations: { "k8s.io/initial-events-end": "true" },
    },
  };
  response.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://x");
  const send = (value: object) => {
    response.writeHead(200, HEADERS);
    response.end(JSON.stringify(value));
  };
  const found = shapes.find((shape) =>
    pathname.endsWith(`${basePath(shape)}/${shape.kind.plural}`)
  );
  if (found !== undefined && searchParams.has("watch")) {
    void watch(response, found, searchParams.has("sendInitialEvents"));
  } else if (found !== undefined) {
    // Only the look before the start lists: the state is a stream.
    send({ metadata: { resourceVersion: "1" }, items: [] });
  } else {
    const resources = shapes.filter((shape) => basePath(shape) === pathname)
      .map(({ kind }) => ({
        name: kind.plural,
        kind: kind.kind,
        namespaced: true,
        verbs: ["get", "list", "watch"],
      }));
    send({ kind: "APIResourceList", resources });
  }
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify(`http://127.0.0.1:${port}`)}\n`);
});
process.stdin.on("end", () => process.exit(0)).resume();
