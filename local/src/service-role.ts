import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { REPOSITORY } from './services.ts';

/** What the chart runs beside its PostgreSQL. */
const SCRIPT = join(REPOSITORY, 'charts', 'rollcall', 'files', 'postgresql', 'service-role.sql');

/**
 * Makes the role of a service and its schemas in a database, and gives it a new password.
 *
 * @param adminUrl a superuser's URL of the database.
 * @returns the URL of the same database for the service.
 */
export async function createServiceRole(adminUrl: string, service: string): Promise<string> {
  const password = randomBytes(24).toString('base64url');
  const client = new Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(`SELECT set_config('rollcall.service', $1, false), set_config('rollcall.password', $2, false)`, [
      service,
      password,
    ]);
    await client.query(await readFile(SCRIPT, 'utf8'));
  } finally {
    await client.end();
  }
  const url = new URL(adminUrl);
  url.username = service;
  url.password = password;
  return url.href;
}
