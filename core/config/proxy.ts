import { BlockList, isIP } from "node:net";

export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_PORTS: Readonly<Record<string, string>> = {
  "https:": "443",
  "http:": "80",
};

/**
 * Finds the proxy for a server in the environment variables, by the rules of Go
 * and thus of kubectl: `HTTPS_PROXY` or `HTTP_PROXY`, depending on the scheme of
 * the server, unless `NO_PROXY` matches its host. Loopback addresses never use a
 * proxy.
 */
export function proxyFromEnvironment(
  server: string,
  environment: Environment,
): string | undefined {
  const url = new URL(server);
  const read = (name: string) =>
    environment[name] || environment[name.toLowerCase()] || "";
  const proxy = read(url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY");
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const port = url.port || DEFAULT_PORTS[url.protocol] || "";
  if (proxy === "" || isLoopback(host)) return undefined;
  const excepted = read("NO_PROXY").split(",")
    .some((pattern) => matches(pattern.trim().toLowerCase(), host, port));
  if (excepted) return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" ||
    (isIP(host) === 4 && host.startsWith("127."));
}

/** Whether an entry of `NO_PROXY` (address, network, domain) matches a host. */
function matches(pattern: string, host: string, port: string): boolean {
  if (pattern === "") return false;
  if (pattern === "*") return true;
  const [, network = "", bits] = /^(.*)\/(\d+)$/.exec(pattern) ?? [];
  if (isIP(network) !== 0) return inNetwork(host, network, Number(bits));
  const withPort = /^(?:\[([^\]]+)\]|([^:]*)):(\d+)$/.exec(pattern);
  if (withPort !== null && withPort[3] !== port) return false;
  const name = (withPort?.[1] ?? withPort?.[2] ?? pattern)
    .replace(/^\*(?=\.)/, "").replace(/^\[|\]$/g, "");
  if (isIP(name) !== 0) {
    return inNetwork(host, name, isIP(name) === 4 ? 32 : 128);
  }
  return name.startsWith(".")
    ? host.endsWith(name)
    : host === name || host.endsWith(`.${name}`);
}

function inNetwork(host: string, network: string, bits: number): boolean {
  const version = isIP(network);
  const most = version === 4 ? 32 : 128;
  if (isIP(host) !== version || !(bits >= 0 && bits <= most)) return false;
  const family = version === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(network, bits, family);
  return list.check(host, family);
}
