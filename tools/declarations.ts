/**
 * Selects the declarations of a package that its entry points need, from those that
 * the compiler writes file by file.
 *
 * A declaration is needed if an entry point exports it, or if one that is needed
 * names it. Doc comments stay where editors show them: on what programs can import
 * and on the types that it names. The rest, which only makes deeper types complete,
 * is there for the compiler.
 *
 * @module
 */
import { posix } from "node:path";

/** Where declarations come from, and who needs them. */
export interface DeclarationsInput {
  /** Text of a file such as `core/clock.d.ts`; undefined if there is none. */
  readonly read: (file: string) => string | undefined;
  /** Entry points by their files, such as `core/mod.d.ts`. */
  readonly entryPoints: readonly string[];
  /** Those of them that are not for users: their declarations have no docs. */
  readonly undocumented: readonly string[];
  /** Names of theirs that have docs, as another package exports them to users. */
  readonly reexported?: readonly string[];
}

/** Statement of a file with its doc comment. */
interface Statement {
  readonly file: DeclarationFile;
  readonly doc: string;
  readonly text: string;
  /** Words of the code, among which are the names of what it needs. */
  readonly words: ReadonlySet<string>;
}

/** Name that a file imports or exports from another. */
interface Link {
  readonly statement: Statement;
  /** The other file; undefined for a package. */
  readonly target: string | undefined;
  /** Name in the other file; `*` for all. */
  readonly name: string;
}

interface DeclarationFile {
  readonly path: string;
  /** Doc comment of the module. */
  readonly doc: string;
  readonly statements: readonly Statement[];
  /** Statements that declare a name: overloads, or a type and a value. */
  readonly declared: Map<string, Statement[]>;
  readonly imported: Map<string, Link>;
  readonly exported: Map<string, Link>;
  /** Statements `export * from`. */
  readonly stars: Link[];
}

/** Distance from an entry point up to which doc comments stay. */
const DOCUMENTED = 1;
const STATEMENT =
  /^(?:export|declare|import|interface|type|const|class|abstract)\b/;
const DECLARATION =
  /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|function|const|let) (\w+)/;
const IMPORT =
  /^import (?:type )?(?:(\w+)|\* as (\w+)|\{([^}]*)\}) from "([^"]+)"/;
const EXPORT = /^export (?:type )?\{([^}]*)\} from "([^"]+)"/;
const STAR = /^export \* from "([^"]+)"/;
const WHOLE = /import\("(\.[^"]+)"\)/g;
const DOC_COMMENT = /^ *\/\*\*[^]*?\*\/\n/gm;

/** Needed declarations: files by their paths, with their texts. */
export function neededDeclarations(
  { read, entryPoints, undocumented, reexported = [] }: DeclarationsInput,
): ReadonlyMap<string, string> {
  const files = new Map<string, DeclarationFile>();
  /** Distances of needed statements from an entry point. */
  const needed = new Map<Statement, number>();
  const usedImports = new Set<Link>();
  const waiting: { statement: Statement; distance: number }[] = [];

  const fileOf = (path: string): DeclarationFile => {
    const known = files.get(path);
    if (known !== undefined) return known;
    const text = read(path);
    if (text === undefined) {
      throw new Error(`Cannot select declarations: there is no file ${path}`);
    }
    const file = readFile(path, text);
    files.set(path, file);
    return file;
  };
  const namesOf = (file: DeclarationFile): ReadonlySet<string> =>
    new Set([
      ...file.exported.keys(),
      ...[...file.declared].filter(([, statements]) =>
        statements.some(({ text }) => text.startsWith("export"))
      ).map(([name]) => name),
      ...file.stars.flatMap(({ target }) => [...namesOf(fileOf(target!))]),
    ]);
  const need = (statement: Statement, distance: number): void => {
    if (needed.has(statement)) return;
    needed.set(statement, distance);
    waiting.push({ statement, distance });
  };
  /** Marks what a file calls by a name, as its own or by an export. */
  const needName = (path: string, name: string, distance: number): void => {
    const file = fileOf(path);
    if (name === "*") {
      for (const each of namesOf(file)) needName(path, each, distance);
      return;
    }
    for (const statement of file.declared.get(name) ?? []) {
      need(statement, distance);
    }
    const links = [
      file.exported.get(name),
      ...file.stars.filter(({ target }) => namesOf(fileOf(target!)).has(name)),
    ];
    for (const link of links) {
      if (link === undefined) continue;
      need(link.statement, distance);
      if (link.target === undefined) continue;
      needName(link.target, link.name === "*" ? name : link.name, distance);
    }
  };
  const follow = (): void => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { statement: { file, text, words }, distance } = next;
      for (const [, path = ""] of text.matchAll(WHOLE)) {
        needName(targetOf(file.path, path)!, "*", distance + 1);
      }
      for (const word of words) {
        for (const other of file.declared.get(word) ?? []) {
          need(other, distance + 1);
        }
        const link = file.imported.get(word);
        if (link === undefined) continue;
        usedImports.add(link);
        if (link.target !== undefined) {
          needName(link.target, link.name, distance + 1);
        }
      }
      // A statement such as `export { a, b } from` stays whole.
      for (const { statement, target, name } of file.exported.values()) {
        if (statement === next.statement && target !== undefined) {
          needName(target, name, distance);
        }
      }
    }
  };
  const hidden = new Set(undocumented);
  for (const entry of entryPoints) {
    for (const name of hidden.has(entry) ? reexported : ["*"]) {
      needName(entry, name, 0);
    }
  }
  follow();
  for (const entry of undocumented) needName(entry, "*", DOCUMENTED + 1);
  follow();

  const kept = new Map<string, string>();
  for (const file of files.values()) {
    const parts = file.statements.flatMap((statement) => {
      const { doc, text } = statement;
      if (text.startsWith("import ")) {
        return withUsedNames(statement, usedImports);
      }
      if (text.startsWith("export {}")) return text;
      const distance = needed.get(statement);
      if (distance === undefined) return [];
      return distance > DOCUMENTED ? text.replace(DOC_COMMENT, "") : doc + text;
    });
    const isEntryPoint = entryPoints.includes(file.path);
    if (isEntryPoint) parts.unshift(file.doc);
    if (isEntryPoint || file.statements.some((each) => needed.has(each))) {
      kept.set(file.path, parts.join(""));
    }
  }
  return kept;
}

/** Import statement with the names that are used; none without any. */
function withUsedNames(
  statement: Statement,
  used: ReadonlySet<Link>,
): string | readonly string[] {
  const names: string[] = [];
  for (const [name, link] of statement.file.imported) {
    if (link.statement !== statement || !used.has(link)) continue;
    if (!statement.text.includes("{")) return statement.text;
    names.push(name === link.name ? name : `${link.name} as ${name}`);
  }
  const [, from = ""] = / from ("[^"]+");/.exec(statement.text) ?? [];
  return names.length === 0
    ? []
    : `import type { ${names.join(", ")} } from ${from};\n`;
}

/** Path of an imported file; undefined for a package. */
function targetOf(from: string, specifier: string): string | undefined {
  return specifier.startsWith(".")
    ? posix.join(posix.dirname(from), specifier).replace(/\.[jt]s$/, ".d.ts")
    : undefined;
}

/** Reads a file as the compiler writes it: each statement begins a line. */
function readFile(path: string, text: string): DeclarationFile {
  const file: DeclarationFile & { doc: string; statements: Statement[] } = {
    path,
    doc: "",
    statements: [],
    declared: new Map(),
    imported: new Map(),
    exported: new Map(),
    stars: [],
  };
  const add = (doc: string, lines: readonly string[]): void => {
    const statement = statementOf(file, doc, lines);
    file.statements.push(statement);
    link(file, statement);
  };
  let doc = "";
  let lines: string[] = [];
  let isComment = false;
  let nextDoc = "";
  for (const line of text.split("\n")) {
    if (isComment || line.startsWith("/**")) {
      nextDoc += `${line}\n`;
      isComment = !line.includes("*/");
      if (isComment || !nextDoc.includes("@module")) continue;
      file.doc = nextDoc;
      nextDoc = "";
    } else if (STATEMENT.test(line)) {
      if (lines.length > 0) add(doc, lines);
      [doc, nextDoc] = [nextDoc, ""];
      lines = [line];
    } else if (lines.length > 0) {
      // A member of a union has its comment at the begin of a line, too.
      lines.push(`${nextDoc}${line}`);
      nextDoc = "";
    }
  }
  if (lines.length > 0) add(doc, lines);
  return file;
}

function statementOf(
  file: DeclarationFile,
  doc: string,
  lines: readonly string[],
): Statement {
  const text = `${lines.join("\n").trimEnd()}\n`;
  const code = text.replaceAll(/\/\*[^]*?\*\/|"(?:[^"\\]|\\.)*"/g, " ");
  return { file, doc, text, words: new Set(code.match(/[\w$]+/g)) };
}

/** Notes what a statement declares, imports or exports. */
function link(file: DeclarationFile, statement: Statement): void {
  const { text } = statement;
  const [, only, all, imported, from = ""] = IMPORT.exec(text) ?? [];
  const [, exported, source = ""] = EXPORT.exec(text) ?? [];
  const [, star] = STAR.exec(text) ?? [];
  const [, declared] = DECLARATION.exec(text) ?? [];
  const local = only ?? all;
  if (local !== undefined) {
    const target = targetOf(file.path, from);
    file.imported.set(local, { statement, target, name: "*" });
  } else if (imported !== undefined) {
    for (const [name, as] of namesIn(imported)) {
      const target = targetOf(file.path, from);
      file.imported.set(as, { statement, target, name });
    }
  } else if (exported !== undefined) {
    for (const [name, as] of namesIn(exported)) {
      const target = targetOf(file.path, source);
      file.exported.set(as, { statement, target, name });
    }
  } else if (star !== undefined) {
    const target = targetOf(file.path, star);
    file.stars.push({ statement, target, name: "*" });
  } else if (declared !== undefined) {
    const statements = file.declared.get(declared);
    if (statements === undefined) file.declared.set(declared, [statement]);
    else statements.push(statement);
  } else if (!text.startsWith("export {}")) {
    throw new Error(
      `Cannot select declarations of ${file.path}: a statement is of no known form: received ${
        text.split("\n", 1)[0]
      }`,
    );
  }
}

/** Names in braces, each with the name that it gets. */
function namesIn(list: string): readonly (readonly [string, string])[] {
  return list.split(",").map((part) => part.trim().replace(/^type /, ""))
    .filter((part) => part !== "")
    .map((part) => {
      const [name = "", as = name] = part.split(" as ");
      return [name, as] as const;
    });
}
