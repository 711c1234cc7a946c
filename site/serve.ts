/**
 * Static server for the built site, with the headers that a host should set.
 *
 * @module
 */

import { once } from "node:events";
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
};

/** Server of a folder. */
export interface SiteServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Serves a folder on loopback. */
export async function serve(folder: string, port: number): Promise<SiteServer> {
  const server = createServer((request, response) => {
    const file = fileOf(folder, request.url ?? "/");
    const status = file === undefined ? 404 : 200;
    const found = file ?? join(folder, "404.html");
    response.writeHead(status, {
      "content-type": TYPES[extname(found)] ?? "application/octet-stream",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
    });
    if (request.method === "HEAD") response.end();
    else {createReadStream(found).on("error", () => response.end()).pipe(
        response,
      );}
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** File for a request: as it is named, with `.html`, or a folder's index. */
function fileOf(folder: string, url: string): string | undefined {
  let path: string;
  try {
    path = normalize(decodeURIComponent(new URL(url, "http://site").pathname));
  } catch {
    return undefined;
  }
  if (path.includes("..") || path.includes("\0")) return undefined;
  for (const name of [path, `${path}.html`, join(path, "index.html")]) {
    const file = join(folder, name);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file;
  }
  return undefined;
}
