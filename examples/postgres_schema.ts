/**
 * Operator for schemas of a PostgreSQL database, an external resource. Each
 * PostgresSchema gets a schema, a role that owns it, and a Secret with the
 * password of the role; deleting it drops them.
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: PostgresSchema
 *     metadata: { name: orders }
 *     spec: {}
 *
 * DATABASE_URL has the database and its user: a superuser, or a role that may
 * create roles, and schemas in that database. Without it PGlite runs a database
 * in this process, so the example needs nothing else.
 */
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import process from "node:process";
import {
  defineKind,
  type ObjectOf,
  Operator,
  patchStatus,
  setStatus,
} from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import { perResourcePollingSource } from "@coracle/operator/sources";
import {
  externalDependent,
  kubernetesDependent,
  Workflow,
} from "@coracle/operator/workflows";
import { z } from "zod";

const PostgresSchema = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "PostgresSchema",
  spec: z.object({ connectionLimit: z.int32().min(-1).default(-1) }),
  status: z.object({
    schema: z.string(),
    secret: z.string(),
    message: z.string(),
  }).partial(),
  printerColumns: [
    { name: "Schema", type: "string", jsonPath: ".status.schema" },
    { name: "Message", type: "string", jsonPath: ".status.message" },
  ],
});
type PostgresSchema = ObjectOf<typeof PostgresSchema>;

/** Schema and the role of the same name that owns it. */
interface Schema {
  readonly name: string;
  /** Whether both exist and the role owns the schema. */
  readonly owned: boolean;
  readonly connectionLimit: number;
  /** Hash of the password, which cannot be read from the database. */
  readonly fingerprint: string;
}

type Row = Readonly<Record<string, unknown>>;

interface Database {
  query(text: string, parameters: string[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

/** Checks DATABASE_URL without connecting. */
async function connect(url: string): Promise<Database> {
  const { default: postgres } = await import("postgres");
  try {
    if (!/^postgres(ql)?:/.test(url)) {
      throw new TypeError("It names no database");
    }
    const sql = postgres(url, { max: 1, onnotice() {} });
    let isClosed = false;
    let last: Promise<unknown> = Promise.resolve();
    return {
      // One after the other: the driver connects again, forever, if queries
      // wait in it when it ends.
      query(text, parameters) {
        const rows = last.then(() => {
          if (!isClosed) return sql.unsafe(text, parameters);
          throw new Error("Cannot query the database: it is closed");
        });
        last = rows.catch(() => {});
        return rows;
      },
      close() {
        isClosed = true;
        // Seconds until a database that does not answer is an error.
        return sql.end({ timeout: 5 });
      },
    };
  } catch {
    // Neither the URL nor the error is shown: both have the password.
    throw new TypeError(
      "Cannot read DATABASE_URL: it must be of the form postgres://user:password@host:5432/database",
    );
  }
}

async function startDatabase(): Promise<Database> {
  const { PGlite } = await import("@electric-sql/pglite");
  const database = await PGlite.create();
  return {
    query: async (text, parameters) =>
      (await database.query<Row>(text, parameters)).rows,
    close: () => database.close(),
  };
}

const url = process.env["DATABASE_URL"];
let database: Promise<Database> | undefined;
if (url !== undefined) await (database = connect(url));

/** Queries the database; without a URL the first query starts one. */
async function query(
  text: string,
  parameters: string[] = [],
): Promise<readonly Row[]> {
  return await (await (database ??= startDatabase())).query(text, parameters);
}

/** Quotes a name: DDL statements take no parameters. */
function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a text for standard_conforming_strings. */
function literal(text: string): string {
  if (text.includes("\0")) throw new TypeError("A text must not have zeros");
  return `'${text.replaceAll("'", "''")}'`;
}

/** Name of at most 63 bytes, the limit of PostgreSQL; a long one ends in a hash. */
function schemaName({ metadata: { namespace, name } }: PostgresSchema): string {
  const full = `${namespace}.${name}`;
  return full.length <= 63 ? full : `${full.slice(0, 46)}.${short(full)}`;
}

function short(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function secretName({ metadata: { name } }: PostgresSchema): string {
  return `${name}-postgres`;
}

// Creates the password once. A deleted Secret is created again with a new
// password, which the role then gets.
const secret = kubernetesDependent<PostgresSchema, Secret>(Secret, {
  async desired(schema, ctx) {
    const name = secretName(schema);
    const known = (await ctx.get(Secret, name))?.data?.["password"];
    const password = known ??
      Buffer.from(randomBytes(24).toString("base64url")).toString("base64");
    const username = Buffer.from(schemaName(schema)).toString("base64");
    return { metadata: { name }, data: { username, password } };
  },
});

const schemas = perResourcePollingSource<PostgresSchema, Schema>({
  name: "schemas",
  interval: "2s",
  id: ({ name }) => name,
  // Also finds one without the other, or with another owner: to correct or to
  // delete it.
  async fetch(primary) {
    const rows = await query(
      `SELECT rolconnlimit, nspowner = r.oid AS owned,
              shobj_description(r.oid, 'pg_authid') AS note
         FROM pg_roles r FULL JOIN pg_namespace n ON nspname = rolname
        WHERE $1 IN (nspname, rolname)`,
      [schemaName(primary)],
    );
    return rows.map(({ rolconnlimit, owned, note }) => ({
      name: schemaName(primary),
      owned: owned === true,
      connectionLimit: Number(rolconnlimit),
      fingerprint: String(note),
    }));
  },
});

type Wish = Schema & { readonly password: string };

/** Creates or corrects the role and the schema. */
async function bringInLine(wish: Wish): Promise<Schema> {
  const { name, connectionLimit, fingerprint, password } = wish;
  const owner = identifier(name);
  const roles = await query("SELECT FROM pg_roles WHERE rolname = $1", [name]);
  const verb = roles.length === 0 ? "CREATE" : "ALTER";
  await query(
    `${verb} ROLE ${owner} LOGIN CONNECTION LIMIT ${connectionLimit} PASSWORD ${
      literal(password)
    }`,
  );
  // Without superuser rights only a member of a role can give it a schema.
  await query(`GRANT ${owner} TO CURRENT_USER`);
  await query(`CREATE SCHEMA IF NOT EXISTS ${owner}`);
  await query(`ALTER SCHEMA ${owner} OWNER TO ${owner}`);
  // Last, so that an interrupted creation is detected.
  await query(`COMMENT ON ROLE ${owner} IS ${literal(fingerprint)}`);
  return { name, owned: true, connectionLimit, fingerprint };
}

const schema = externalDependent<PostgresSchema, Wish, Schema>({
  source: schemas,
  async desired(primary, ctx) {
    const { data = {} } = await ctx.get(Secret, secretName(primary)) ?? {};
    const password = Buffer.from(data["password"] ?? "", "base64").toString();
    const { connectionLimit } = primary.spec;
    const fingerprint = short(password);
    return {
      name: schemaName(primary),
      owned: true,
      connectionLimit,
      fingerprint,
      password,
    };
  },
  matches: (wish, actual) =>
    actual.owned &&
    wish.connectionLimit === actual.connectionLimit &&
    wish.fingerprint === actual.fingerprint,
  create: bringInLine,
  update: bringInLine,
  async delete({ name }) {
    await query(`DROP SCHEMA IF EXISTS ${identifier(name)} CASCADE`);
    await query(`DROP ROLE IF EXISTS ${identifier(name)}`);
  },
});

const workflow = new Workflow<PostgresSchema>()
  .add("secret", secret)
  .add("schema", schema, { dependsOn: ["secret"] });

const operator = new Operator();

operator.register(PostgresSchema, {
  reconcile(primary, ctx) {
    const made = workflow.resultOf(ctx).resource("schema");
    // The whole status: the message of an earlier failure is removed.
    return setStatus({ schema: made?.name, secret: secretName(primary) });
  },
  // Only the message: schema and secret stay.
  onError: (_primary, error) =>
    patchStatus({
      message: error instanceof Error ? error.message : String(error),
    }),
}, { workflow, install: true });

await operator.run();
await (await database)?.close();
