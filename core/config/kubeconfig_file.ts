import { dirname, resolve } from "node:path";
import { checkInput, escaped } from "../api/input.ts";
import { loadModule } from "../clock.ts";
import type { FromFile, Kubeconfig, KubeconfigOrigin } from "./kubeconfig.ts";
import { fileFault, readLimited } from "./limited_file.ts";
import { parseYaml } from "./yaml_text.ts";

/** Maximum size of a kubeconfig, in bytes. */
const MAX_KUBECONFIG_BYTES = 16 << 20;
/**
 * Reads a kubeconfig file.
 *
 * @returns `undefined` if the file does not exist.
 * @throws {Error} If the file cannot be read.
 * @throws {SyntaxError} If it is not YAML.
 * @throws {TypeError} If it is not a kubeconfig.
 */
export async function readKubeconfig(
  path: string,
): Promise<Kubeconfig | undefined> {
  let text: string | undefined;
  try {
    text = await readLimited(path, MAX_KUBECONFIG_BYTES);
  } catch (error) {
    const code = fileFault(error);
    if (code === "ENOENT") return undefined;
    throw new Error(
      `Cannot read kubeconfig ${path}: it must be a readable file: received ${code}`,
    );
  }
  if (text === undefined) throw tooLarge(path, "more");
  const folder = dirname(resolve(path));
  return await parseKubeconfig(text, { file: path, folder });
}

function tooLarge(file: string, received: string): RangeError {
  return new RangeError(
    `Cannot read kubeconfig ${file}: it must have at most ${MAX_KUBECONFIG_BYTES} bytes: received ${received}`,
  );
}

/**
 * Parses and checks a kubeconfig. Unknown fields and nulls are ignored, as
 * kubectl does.
 *
 * @param text YAML or JSON.
 * @throws {SyntaxError} If the text is not YAML.
 * @throws {TypeError} If a field has the wrong type or a name occurs twice. The
 * error names file, field and expected type, and quotes no value.
 */
export async function parseKubeconfig(
  text: string,
  origin: KubeconfigOrigin,
): Promise<Kubeconfig> {
  const { file } = origin;
  if (text.length > MAX_KUBECONFIG_BYTES) {
    throw tooLarge(file, `${text.length}`);
  }
  const subject = `kubeconfig ${file}`;
  const document = await parseYaml(text, {
    subject,
    refuse: ({ code, at }) =>
      new SyntaxError(
        `Cannot read ${subject}: it must be YAML: received ${code}${at}`,
      ),
  });
  // Loaded lazily, as zod takes longer to load than the rest of the framework.
  const { KUBECONFIG } = await loadModule(import("./kubeconfig_schema.ts"));
  const checked = checkInput(document ?? {}, KUBECONFIG, {
    refuse: (fault) => new TypeError(`Cannot read ${subject}: ${fault}`),
  });
  return {
    "current-context": checked["current-context"],
    clusters: byName("cluster", checked.clusters, origin),
    contexts: byName("context", checked.contexts, origin),
    users: byName("user", checked.users, origin),
  };
}

type Named<Part extends string, T> =
  & { readonly name: string }
  & { readonly [_ in Part]?: T | undefined };

function byName<Part extends string, T extends object>(
  part: Part,
  entries: readonly Named<Part, T>[] = [],
  origin: KubeconfigOrigin,
): Map<string, FromFile<T>> {
  const map = new Map<string, FromFile<T>>();
  for (const entry of entries) {
    const { name } = entry;
    if (map.has(name)) {
      throw new TypeError(
        `Cannot read kubeconfig ${origin.file}: the names in "${part}s" must differ: received "${
          escaped(name)
        }" twice`,
      );
    }
    const value = entry[part] ?? {} as T;
    map.set(name, { value, path: `${part}s[${name}].${part}`, ...origin });
  }
  return map;
}
