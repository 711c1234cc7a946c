import http from "node:http";
import https from "node:https";
import net from "node:net";

/** Port of a server in a simulation that selected any free port. */
const ANY_PORT = 49_152;

type Listen = (this: net.Server, ...given: readonly unknown[]) => net.Server;

/** Parts of a server's prototype that open and close its socket. */
interface Listening {
  listen: Listen;
  address: (this: net.Server) => net.AddressInfo | null;
  close: (this: net.Server, closed?: () => void) => net.Server;
}

/**
 * Replaces the sockets of servers of `node:http`, `node:https` and `node:net`:
 * a server listens on its port in the simulation alone, which nobody calls.
 * Every run and every restart of the operator would need the same port of this
 * machine otherwise, and a killed process would keep it.
 *
 * @returns A function that restores them.
 */
export function replaceServers(): () => void {
  const ports: WeakMap<net.Server, number> = new WeakMap();
  const replaced: Listening = {
    listen(...given) {
      const callback = given.find((one) => typeof one === "function");
      if (callback !== undefined) {
        this.once("listening", callback as () => void);
      }
      ports.set(this, portIn(given[0]) || ANY_PORT);
      queueMicrotask(() => this.emit("listening"));
      return this;
    },
    address() {
      const port = ports.get(this);
      if (port === undefined) return null;
      return { address: "127.0.0.1", family: "IPv4", port };
    },
    close(closed) {
      ports.delete(this);
      if (typeof closed === "function") this.once("close", closed);
      queueMicrotask(() => this.emit("close"));
      return this;
    },
  };
  const restore = [net, http, https].map(({ Server }) => {
    const prototype = Server.prototype as object;
    const names = Object.keys(replaced);
    const before = names.map((name) =>
      Object.getOwnPropertyDescriptor(prototype, name)
    );
    for (const [name, value] of Object.entries(replaced)) {
      Object.defineProperty(prototype, name, {
        value,
        configurable: true,
        writable: true,
      });
    }
    return () => {
      for (const [at, name] of names.entries()) {
        const own = before[at];
        if (own === undefined) Reflect.deleteProperty(prototype, name);
        else Object.defineProperty(prototype, name, own);
      }
    };
  });
  return () => {
    for (const undo of restore) undo();
  };
}

/** Port of the arguments of `listen`; undefined without one. */
function portIn(first: unknown): number | undefined {
  if (typeof first === "object" && first !== null) {
    return Number((first as { readonly port?: unknown }).port);
  }
  return typeof first === "number" || typeof first === "string"
    ? Number(first)
    : undefined;
}
