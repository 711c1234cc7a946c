import { Buffer } from "node:buffer";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Kubeconfig } from "./kubeconfig.ts";
import type { KubeconfigOrigin } from "./kubeconfig_schema.ts";

/** A kubeconfig is written by people; more than this is something else. */
const MOST_BYTES = 16 << 20;

/**
 * Reads a kubeconfig file.
 *
 * @param path Which file.
 * @returns `undefined` if there is no such file.
 * @throws {Error} If it cannot be read.
 * @throws {SyntaxError} If it is not YAML.
 * @throws {TypeError} If it is not a kubeconfig.
 */
export async function readKubeconfig(
  path: string,
): Promise<Kubeconfig | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error
      ? String(error.code)
      : String(error);
    if (code === "ENOENT") return undefined;
    throw new Error(
      `Cannot read kubeconfig ${path}: it must be a file that can be read: received ${code}`,
    );
  }
  return await parseKubeconfig(Buffer.from(bytes).toString(), {
    file: path,
    folder: dirname(resolve(path)),
  });
}

/**
 * Reads the text of a kubeconfig.
 *
 * @param text YAML or JSON.
 * @param origin Where it came from.
 * @throws {SyntaxError} If it is not YAML.
 * @throws {TypeError} If it is not a kubeconfig.
 */
export async function parseKubeconfig(
  text: string,
  origin: KubeconfigOrigin,
): Promise<Kubeconfig> {
  const { file } = origin;
  if (text.length > MOST_BYTES) {
    throw new RangeError(
      `Cannot read kubeconfig ${file}: it must have at most ${MOST_BYTES} bytes: received ${text.length}`,
    );
  }
  const [{ parse }, { checkKubeconfig }] = await Promise.all([
    import("yaml"),
    import("./kubeconfig_schema.ts"),
  ]);
  let document: unknown;
  try {
    document = parse(text, { logLevel: "error" });
  } catch (error) {
    throw new SyntaxError(
      `Cannot read kubeconfig ${file}: it must be YAML: received ${
        faultOf(error)
      }`,
    );
  }
  return checkKubeconfig(document ?? {}, origin);
}

/** Code and place of a fault: the message would quote the line. */
function faultOf(error: unknown): string {
  const { code, linePos } = error as {
    readonly code?: string;
    readonly linePos?: readonly {
      readonly line: number;
      readonly col: number;
    }[];
  };
  const place = linePos?.[0];
  return place === undefined
    ? "something else"
    : `${code} at line ${place.line}, column ${place.col}`;
}
