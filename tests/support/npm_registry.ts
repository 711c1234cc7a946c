import { createReadStream } from "node:fs";
import {
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { PROJECT, runCommand } from "./child_process.ts";

/** Registry of npm on a loopback port, with a few packages. */
export interface NpmRegistry {
  readonly url: string;
  /** Paths in the tarballs, and their sizes, by the names of the packages. */
  readonly packed: ReadonlyMap<string, PackedPackage>;
  stop(): Promise<void>;
}

interface Manifest {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Result of `npm pack`. */
export interface PackedPackage {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly integrity: string;
  readonly shasum: string;
  /** Bytes of the tarball. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
  /** Its package.json. */
  readonly manifest: Manifest;
}

/** Tarballs of packages in node_modules, which do not change. */
export const CACHE: string = join(PROJECT, ".cache", "tarballs");

/**
 * Packs packages as `npm publish` would, and serves them.
 *
 * @param sources The folders of the packages.
 * @param installed Names of packages in node_modules.
 * @param folder An empty folder for the tarballs.
 */
export async function startRegistry(
  { sources, installed, folder }: {
    readonly sources: readonly string[];
    readonly installed: readonly string[];
    readonly folder: string;
  },
): Promise<NpmRegistry> {
  const packed = new Map<string, PackedPackage>();
  const packuments = new Map<string, (url: string) => unknown>();
  const tarballs = new Map<string, string>();
  const add = (one: PackedPackage, place: string) => {
    const { name, version, filename, integrity, shasum, manifest } = one;
    packed.set(name, one);
    tarballs.set(`/-/${filename}`, join(place, filename));
    packuments.set(name, (url) => ({
      name,
      "dist-tags": { latest: version },
      time: { [version]: "2020-01-01T00:00:00.000Z" },
      versions: {
        [version]: {
          ...withServed(manifest, (other) => packed.has(other)),
          dist: { tarball: `${url}/-/${filename}`, integrity, shasum },
        },
      },
    }));
  };
  for (const source of sources) add(await pack(source, folder), folder);
  for (const name of installed) add(await packInstalled(name), CACHE);
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").replace(/\?.*/, "");
    const packument = packuments.get(path.slice(1));
    const tarball = tarballs.get(path);
    if (packument !== undefined) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(packument(url)));
    } else if (tarball !== undefined) {
      createReadStream(tarball).pipe(response);
    } else response.writeHead(404).end("{}");
  });
  await new Promise<void>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve())
  );
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    packed,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A manifest without the optional and peer packages that are not served. */
function withServed(
  { optionalDependencies = {}, peerDependencies = {}, ...manifest }: Manifest,
  isServed: (name: string) => boolean,
): object {
  const served = (list: Readonly<Record<string, string>>) =>
    Object.fromEntries(
      Object.entries(list).filter(([name]) => isServed(name)),
    );
  return {
    ...manifest,
    optionalDependencies: served(optionalDependencies),
    peerDependencies: served(peerDependencies),
  };
}

/**
 * Packs a package as `npm publish` would.
 *
 * @param source Its folder.
 * @param folder Folder for the tarball.
 */
export async function pack(
  source: string,
  folder: string,
): Promise<PackedPackage> {
  const { code, stdout, stderr } = await runCommand([
    ...["npm", "pack", "--json", "--ignore-scripts", "--no-update-notifier"],
    ...[`--pack-destination=${folder}`, source],
  ], { env: { NODE_OPTIONS: undefined }, limit: 120_000 });
  if (code !== 0) throw new Error(`npm pack ${source}: ${stderr}`);
  const [packed] = JSON.parse(stdout) as readonly PackedPackage[];
  if (packed === undefined) throw new Error(`npm pack ${source}: no package`);
  const file = join(source, "package.json");
  return { ...packed, manifest: JSON.parse(await readFile(file, "utf8")) };
}

/** Packs a package of node_modules, or takes the tarball of an earlier run. */
export async function packInstalled(name: string): Promise<PackedPackage> {
  const source = join(PROJECT, "node_modules", name);
  const { version } = JSON.parse(
    await readFile(join(source, "package.json"), "utf8"),
  );
  const record = join(CACHE, `${name.replace("/", "-")}-${version}.json`);
  const known = await readFile(record, "utf8").catch(() => undefined);
  if (known !== undefined) return JSON.parse(known);
  await mkdir(CACHE, { recursive: true });
  const draft = await mkdtemp(join(CACHE, "draft-"));
  const packed = await pack(source, draft);
  await rename(join(draft, packed.filename), join(CACHE, packed.filename));
  await writeFile(record, JSON.stringify(packed));
  await rm(draft, { recursive: true });
  return packed;
}

/**
 * Environment of a user whose package managers have a registry and empty caches.
 *
 * @param home An empty folder.
 */
export function userEnvironment(
  { url }: NpmRegistry,
  home: string,
): Readonly<Record<string, string | undefined>> {
  return {
    HOME: home,
    NODE_OPTIONS: undefined,
    BUN_OPTIONS: undefined,
    NPM_CONFIG_REGISTRY: url,
    npm_config_registry: url,
    BUN_CONFIG_REGISTRY: url,
    npm_config_userconfig: join(home, ".npmrc"),
    npm_config_cache: join(home, "npm"),
    npm_config_user_agent: undefined,
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    BUN_INSTALL_CACHE_DIR: join(home, "bun"),
    DENO_DIR: join(home, "deno"),
    DENO_NO_UPDATE_CHECK: "1",
    HTTP_PROXY: undefined,
    HTTPS_PROXY: undefined,
    http_proxy: undefined,
    https_proxy: undefined,
  };
}
