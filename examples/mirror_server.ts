/**
 * Small server of artifacts for the test of `mirror.ts`: with ETags, and with the
 * faults of real servers on demand.
 */
import { createHash } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * Behaviour of the server: it hangs before or within its answer, announces a
 * body of 50 GB, or sends as much without announcing it.
 */
export type Manners = "good" | "hangs" | "stops" | "huge" | "endless";

/** Running server of artifacts. */
export interface ArtifactServer {
  /** Port that it listens on. */
  readonly port: number;
  /** Answers so far, as `status path`. */
  readonly answers: string[];
  /** Behaviour of later answers. */
  manners: Manners;
  /** Serves a text at a path. */
  offer(path: string, text: string): void;
  /** Stops it and closes all connections. */
  stop(): Promise<void>;
}

/** Size of a huge artifact in bytes. */
const HUGE = 50 * 2 ** 30;
const CHUNK: Uint8Array = new Uint8Array(64 * 1024);

/**
 * Starts a server on the loopback interface.
 *
 * @param port Port to listen on; zero for any free one.
 */
export async function startArtifactServer(port = 0): Promise<ArtifactServer> {
  const texts = new Map<string, string>();
  const answers: string[] = [];
  const http = createServer((request, response) => {
    const path = request.url ?? "/";
    const text = texts.get(path);
    const etag = text && `"${createHash("sha1").update(text).digest("hex")}"`;
    const known = request.headers["if-none-match"];
    const status = etag === undefined ? 404 : etag === known ? 304 : 200;
    if (server.manners === "hangs") return;
    answers.push(`${status} ${path}`);
    response.writeHead(status, {
      ...(etag !== undefined && { etag }),
      ...(server.manners === "huge" && status === 200 &&
        { "content-length": HUGE }),
    });
    if (status !== 200) response.end();
    else answer(response, text ?? "", server.manners);
  });
  await new Promise<void>((resolve) => http.listen(port, "127.0.0.1", resolve));
  const server: ArtifactServer = {
    port: (http.address() as AddressInfo).port,
    answers,
    manners: "good",
    offer: (path, text) => void texts.set(path, text),
    stop: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
  return server;
}

function answer(
  response: ServerResponse,
  text: string,
  manners: Manners,
): void {
  switch (manners) {
    case "stops":
      response.write(text.slice(0, 1));
      return;
    case "huge":
    case "endless":
      pour(response);
      return;
    default:
      response.end(text);
  }
}

/** Sends 50 GB as fast as they are read. */
function pour(response: ServerResponse): void {
  let left = HUGE;
  const more = () => {
    while (left > 0 && !response.destroyed) {
      left -= CHUNK.length;
      if (!response.write(CHUNK)) return;
    }
    if (left <= 0) response.end();
  };
  response.on("drain", more);
  more();
}
