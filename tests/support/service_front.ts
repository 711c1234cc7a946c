import { connect, createServer, type Server, type Socket } from "node:net";
import { listenOn } from "../../core/node_http.ts";

/** A replica behind a {@linkcode ServiceFront}. */
export interface ServedReplica {
  /** Port on the loopback interface; undefined while it does not listen. */
  readonly port: number | undefined;
  /** Whether new connections are led to it. */
  readonly ready: boolean;
}

/**
 * Stands for a Service of a cluster: a port on the loopback interface whose
 * connections are led to the replicas that are ready, in turns. Open connections stay
 * where they are.
 */
export class ServiceFront {
  readonly #replicas: () => readonly ServedReplica[];
  readonly #sockets: Set<Socket> = new Set();
  /** Times at which a connection was led to a replica that does not listen. */
  readonly unanswered: number[] = [];
  readonly #server: Server;
  #next = 0;
  #port = 0;

  private constructor(replicas: () => readonly ServedReplica[]) {
    this.#replicas = replicas;
    this.#server = createServer((socket) => this.#lead(socket));
  }

  static async start(
    replicas: () => readonly ServedReplica[],
  ): Promise<ServiceFront> {
    const front = new ServiceFront(replicas);
    const address = { host: "127.0.0.1", port: 0 };
    front.#port = await listenOn(front.#server, address, "serve a front");
    return front;
  }

  get port(): number {
    return this.#port;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #lead(socket: Socket): void {
    const ready = this.#replicas().filter(({ ready, port }) =>
      ready && port !== undefined
    );
    const port = ready[this.#next++ % ready.length]?.port;
    if (port === undefined) {
      socket.destroy();
      return;
    }
    const behind = connect(port, "127.0.0.1");
    behind.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (code === "ECONNREFUSED") this.unanswered.push(performance.now());
    });
    for (const [one, other] of [[socket, behind], [behind, socket]] as const) {
      this.#sockets.add(one);
      one.setNoDelay(true);
      one.pipe(other);
      one.on("error", () => {});
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
  }
}
