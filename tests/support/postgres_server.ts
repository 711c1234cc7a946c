import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { PGlite } from "@electric-sql/pglite";

/** A PostgreSQL that others can connect to. */
export interface PostgresServer {
  /** For clients. */
  readonly url: string;
  /** Asks it directly. */
  query(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends all connections. */
  stop(): Promise<void>;
}

/** The request for TLS that clients may begin with, and the answer "no". */
const TLS_REQUEST = 80877103;
const NO_TLS = "N";

/**
 * Serves a PGlite over PostgreSQL's own protocol on a loopback port: for one
 * client, since it has only one session.
 */
export async function startPostgres(): Promise<PostgresServer> {
  const database = await PGlite.create();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    void serve(socket, database);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    query: async (text) =>
      (await database.query<Record<string, unknown>>(text)).rows,
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await database.close();
    },
  };
}

/** Hands each message of a client to the database, and the answer back. */
async function serve(socket: Socket, database: PGlite): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  let started = false;
  try {
    for await (const chunk of socket) {
      rest = Buffer.concat([rest, chunk as Buffer]);
      for (;;) {
        // Only messages before the start have no letter in front.
        const head = started ? 1 : 0;
        if (rest.length < head + 4) break;
        const length = head + rest.readUInt32BE(head);
        if (rest.length < length) break;
        const message = rest.subarray(0, length);
        rest = rest.subarray(length);
        if (!started && message.readUInt32BE(4) === TLS_REQUEST) {
          socket.write(NO_TLS);
          continue;
        }
        started = true;
        if (String.fromCharCode(message[0]!) === "X") return void socket.end();
        socket.write(await database.execProtocolRaw(message));
      }
    }
  } catch {
    // A client that goes away takes its session along.
    socket.destroy();
  }
}
