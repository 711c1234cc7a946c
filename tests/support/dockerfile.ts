import { cp, mkdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { loadConfig } from "../../core/config/load_config.ts";
import { runCommand } from "./child_process.ts";

/** Programs that images start, by the images' names. */
const ENTRYPOINTS: Readonly<Record<string, string>> = {
  "gcr.io/distroless/nodejs24-debian13": "node",
  "denoland/deno:distroless-2.9.5": "deno",
  "oven/bun:1-distroless": "bun",
};

/** The last stage of a Dockerfile whose commands were run without images. */
export interface BuiltStage {
  /** Folder that stands for the root of the image's files. */
  readonly root: string;
  /** Working directory of the container. */
  readonly cwd: string;
  readonly user: string;
  readonly command: readonly string[];
}

/**
 * Runs the instructions of a Dockerfile on this machine: each stage begins with an
 * empty folder instead of its image, so `RUN` has the programs of this machine.
 */
export async function runDockerfile(
  { context, folder, env }: {
    /** Folder of the Dockerfile. */
    readonly context: string;
    /** An empty folder for the stages. */
    readonly folder: string;
    readonly env: Readonly<Record<string, string | undefined>>;
  },
): Promise<BuiltStage> {
  const text = await readFile(join(context, "Dockerfile"), "utf8");
  const ignored = (await readFile(join(context, ".dockerignore"), "utf8"))
    .trim().split("\n");
  const roots = new Map<string, string>();
  let stage = { image: "", root: "", cwd: "", user: "", command: [""] };
  for (const line of text.split("\n")) {
    const [, instruction, rest = ""] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const words = rest.split(" ");
    switch (instruction) {
      case "FROM": {
        const [image = "", , name = `${roots.size}`] = words.filter((word) =>
          !word.startsWith("--platform=")
        );
        const root = join(folder, name);
        await mkdir(root);
        roots.set(name, root);
        stage = { image, root, cwd: root, user: "", command: [] };
        break;
      }
      case "WORKDIR":
        stage.cwd = join(stage.root, rest);
        await mkdir(stage.cwd, { recursive: true });
        break;
      case "COPY": {
        const [, from] = /^--from=(\w+)$/.exec(words[0] ?? "") ?? [];
        const paths = from === undefined ? words : words.slice(1);
        const source = from === undefined ? context : roots.get(from) ?? "";
        const target = join(stage.cwd, paths.at(-1) ?? "");
        for (const path of paths.slice(0, -1)) {
          await copy(join(source, path), target, from ? [] : ignored);
        }
        break;
      }
      case "RUN": {
        const { code, stdout, stderr } = await runCommand(["sh", "-ec", rest], {
          cwd: stage.cwd,
          env,
          limit: 120_000,
        });
        if (code !== 0) throw new Error(`RUN ${rest}: ${stdout}${stderr}`);
        break;
      }
      case "USER":
        stage.user = rest;
        break;
      case "CMD": {
        const entry = ENTRYPOINTS[stage.image];
        if (entry === undefined) throw new Error(`No program: ${stage.image}`);
        stage.command = [entry, ...JSON.parse(rest)];
        break;
      }
      case "EXPOSE":
        break;
      default:
        if (line !== "" && !line.startsWith("#")) throw new Error(line);
    }
  }
  return stage;
}

async function copy(
  source: string,
  target: string,
  ignored: readonly string[],
): Promise<void> {
  const isFolder = (await stat(source)).isDirectory();
  await cp(source, isFolder ? target : join(target, basename(source)), {
    recursive: true,
    filter: (path) => !ignored.includes(path.slice(source.length + 1)),
  });
}

/**
 * Command of an image for a place outside of a pod: with the permissions of Deno for
 * the API server and the file of a kubeconfig, in place of those of a service account,
 * and for any port of its probes.
 */
export async function outsidePod(
  command: readonly string[],
  kubeconfig: string,
): Promise<readonly string[]> {
  const { server } = await loadConfig({ kubeconfig });
  return command.map((word) =>
    word.replace("kubernetes.default.svc:443", new URL(server).host)
      .replace("0.0.0.0:8080", "0.0.0.0")
      .replace("--allow-read=", `--allow-read=${kubeconfig},`)
  );
}
