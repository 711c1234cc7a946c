/**
 * An operator for schemas in a PostgreSQL database: something outside the
 * cluster. Each PostgresSchema gets a schema, a role that owns it, and a Secret
 * with the password of the role; deleting it drops them.
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: PostgresSchema
 *     metadata: { name: orders }
 *     spec: {}
 *
 * DATABASE_URL says where the database is. Without it there is one in this
 * process, by PGlite, so that nothing is needed to try it.
 */
import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import process from "node:process";
import { defineKind, Operator, patchStatus } from "@coracle/operator";
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
  spec: z.object({ connectionLimit: z.int().min(-1).default(-1) }),
  status: z.object({ schema: z.string(), secret: z.string() }).partial(),
});
type PostgresSchema = NonNullable<typeof PostgresSchema.objectType>;

/** A schema and the role of the same name that owns it. */
interface Schema {
  readonly name: string;
  readonly connectionLimit: number;
  /** Names the password, which the database does not tell. */
  readonly fingerprint: string;
}

type Row = Readonly<Record<string, unknown>>;

interface Database {
  query(text: string, parameters: string[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

async function connect(): Promise<Database> {
  const url = process.env["DATABASE_URL"];
  if (url !== undefined) {
    const { default: postgres } = await import("postgres");
    const sql = postgres(url, { max: 1, onnotice() {} });
    return {
      query: (text, parameters) => sql.unsafe(text, parameters),
      close: () => sql.end(),
    };
  }
  const { PGlite } = await import("@electric-sql/pglite");
  const database = await PGlite.create();
  return {
    query: async (text, parameters) =>
      (await database.query<Row>(text, parameters)).rows,
    close: () => database.close(),
  };
}

let database: Promise<Database> | undefined;

/** Asks the database; the first question connects. */
async function query(
  text: string,
  parameters: string[] = [],
): Promise<readonly Row[]> {
  return await (await (database ??= connect())).query(text, parameters);
}

/** Quotes a name: statements that make things take no parameters for names. */
function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a text, as PostgreSQL reads it by its standard_conforming_strings. */
function literal(text: string): string {
  if (text.includes("\0")) throw new TypeError("A text must not have zeros");
  return `'${text.replaceAll("'", "''")}'`;
}

/** PostgreSQL cuts names at 63 bytes: long ones end in a hash instead. */
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

// Makes the password once. A Secret that is deleted comes back with a new one,
// which the role then gets.
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
  async fetch(primary) {
    const rows = await query(
      `SELECT nspname, rolconnlimit, shobj_description(r.oid, 'pg_authid') AS note
         FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
        WHERE nspname = $1 AND rolname = $1`,
      [schemaName(primary)],
    );
    return rows.map(({ nspname, rolconnlimit, note }) => ({
      name: String(nspname),
      connectionLimit: Number(rolconnlimit),
      fingerprint: String(note),
    }));
  },
});

type Wish = Schema & { readonly password: string };

/** Makes the role and the schema as wished, whatever is there of them. */
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
  await query(`CREATE SCHEMA IF NOT EXISTS ${owner} AUTHORIZATION ${owner}`);
  // Last, so that what was left half done is found to be so.
  await query(`COMMENT ON ROLE ${owner} IS ${literal(fingerprint)}`);
  return { name, connectionLimit, fingerprint };
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
      connectionLimit,
      fingerprint,
      password,
    };
  },
  matches: (wish, actual) =>
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
    return patchStatus({ schema: made?.name, secret: secretName(primary) });
  },
}, { workflow, install: true });

await operator.run();
await (await database)?.close();
