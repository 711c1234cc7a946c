import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { PGlite } from "@electric-sql/pglite";

/** PostgreSQL server for other processes. */
export interface PostgresServer {
  /** Connection URL. */
  readonly url: string;
  /** Runs a query directly. */
  query(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Lets all clients wait. @returns Function that lets them go on. */
  hold(): Promise<() => void>;
  /** Ends all connections. */
  stop(): Promise<void>;
}

/** The request for TLS that clients may begin with, and the answer "no". */
const TLS_REQUEST = 80877103;
const NO_TLS = "N";

/** Messages that end an exchange of the protocol. */
const ENDS_EXCHANGE = new Set(["S", "Q"]);

/**
 * Session of the database. An unnamed prepared statement lasts until its
 * exchange ends, so only one client at a time may prepare one.
 */
class Session {
  #last: Promise<unknown> = Promise.resolve();

  /** @returns Gives the session back, once it is one's own. */
  async acquire(): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    return resolve;
  }
}

/**
 * Serves a PGlite by PostgreSQL's protocol on a loopback port. It has one
 * session.
 */
export async function startPostgres(): Promise<PostgresServer> {
  const database = await PGlite.create();
  const session = new Session();
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    void serve(socket, { database, session });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async query(text) {
      const release = await session.acquire();
      try {
        return (await database.query<Record<string, unknown>>(text)).rows;
      } finally {
        release();
      }
    },
    hold: () => session.acquire(),
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await database.close();
    },
  };
}

/** Hands each message of a client to the database, and the answer back. */
async function serve(
  socket: Socket,
  { database, session }: {
    readonly database: PGlite;
    readonly session: Session;
  },
): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  let started = false;
  let release: (() => void) | undefined;
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
        const type = started ? String.fromCharCode(message[0]!) : "Q";
        started = true;
        if (type === "X") return void socket.end();
        release ??= await session.acquire();
        socket.write(await database.execProtocolRaw(message));
        if (!ENDS_EXCHANGE.has(type)) continue;
        release();
        release = undefined;
      }
    }
  } catch {
    // A client that goes away takes its session along.
    socket.destroy();
  } finally {
    release?.();
  }
}
