import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { type Postgres, startPostgres } from '@rollcall/local/postgres.ts';
import { createServiceRole } from '@rollcall/local/service-role.ts';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { startDelivery } from './fixture.ts';

// A server of its own: roles belong to all databases of a server.
let postgres: Postgres;
let namespace: TestNamespace;
let receiver: Receiver;

beforeAll(async () => {
  postgres = await startPostgres({ directory: await mkdtemp(join(inject('temporaryDirectory'), 'roles-')) });
  namespace = await createNamespace('role');
  receiver = await startReceiver();
});

afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await postgres[Symbol.asyncDispose]();
});

/** One connection for several statements; the rows of the last. */
async function query(url: string, ...statements: readonly string[]): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    let rows: unknown[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}

/** Works with the database as a registry does: migrates it, and stores and sends a notification. */
async function useDatabase(databaseUrl: string, channel: string): Promise<void> {
  await using delivery = await startDelivery({ namespace: namespace.name, databaseUrl });
  const endpoints = { [channel]: `${receiver.url}/${channel}` };
  const service = { service_name: 'shop' };
  expect(await delivery.post('/webhooks/config', { ...service, endpoints })).toMatchObject({ status: 200 });
  const answer = await delivery.post('/webhooks/notify', { ...service, channel, message: 'Hello' });
  expect(answer).toMatchObject({ status: 200, body: { status: 'sent' } });
  const isReceived = () => receiver.received.some(({ path }) => path === `/${channel}`);
  await expect.poll(isReceived, { timeout: 30_000 }).toBe(true);
  expect(delivery.logs()).not.toContain('permission denied');
}

/** Of all that is in the schemas of the registry, and of the schemas. */
const OWNERS = `
  SELECT DISTINCT pg_get_userbyid(owner) AS owner FROM (
    SELECT relowner AS owner, relnamespace AS namespace FROM pg_class
    UNION SELECT proowner, pronamespace FROM pg_proc
    UNION SELECT typowner, typnamespace FROM pg_type
    UNION SELECT nspowner, oid FROM pg_namespace
  ) objects WHERE namespace IN ('registry'::regnamespace, 'registry_queue'::regnamespace)`;

test('the role of a service is enough for a registry, and touches nothing of anybody else', {
  timeout: 120_000,
}, async () => {
  const admin = await postgres.createDatabase('new');
  const registry = await createServiceRole(admin, 'registry');
  const payment = await createServiceRole(admin, 'payment');
  await query(payment, 'CREATE TABLE payment.cards (number text)', 'CREATE TABLE payment_queue.job (id int)');
  await useDatabase(registry, 'new');
  expect(await query(admin, OWNERS)).toEqual([{ owner: 'registry' }]);
  const refused: readonly [string, RegExp][] = [
    ['SELECT * FROM payment.cards', /permission denied for schema payment/],
    ['INSERT INTO payment.cards VALUES (1)', /permission denied for schema payment/],
    ['SELECT * FROM payment_queue.job', /permission denied for schema payment_queue/],
    ['DROP SCHEMA payment CASCADE', /must be owner of schema payment/],
    ['CREATE TABLE payment.more (id int)', /permission denied for schema payment/],
    ['CREATE TABLE public.more (id int)', /permission denied for schema public/],
    ['CREATE TEMP TABLE more (id int)', /permission denied to create temporary tables/],
    ['CREATE SCHEMA more', /permission denied for database/],
    ['CREATE ROLE more', /permission denied to create role/],
    ['CREATE DATABASE more', /permission denied to create database/],
    ['SET ROLE payment', /permission denied to set role/],
    ['ALTER ROLE payment PASSWORD $$x$$', /permission denied to alter role/],
    ['GRANT payment TO registry', /permission denied to grant role/],
    [`COPY (SELECT 1) TO PROGRAM 'true'`, /permission denied to COPY to or from an external program/],
    [`SELECT pg_read_file('postgresql.conf')`, /permission denied for function pg_read_file/],
  ];
  for (const [statement, message] of refused) await expect(query(registry, statement)).rejects.toThrow(message);
  for (const name of ['postgres', 'template1', 'another']) {
    if (name === 'another') {
      await postgres.createDatabase(name);
      await createServiceRole(Object.assign(new URL(admin), { pathname: `/${name}` }).href, 'other');
    }
    const elsewhere = Object.assign(new URL(registry), { pathname: `/${name}` }).href;
    await expect(query(elsewhere, 'SELECT 1')).rejects.toThrow(/permission denied for database/);
  }
  const guessed = Object.assign(new URL(payment), { password: new URL(registry).password }).href;
  await expect(query(guessed, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
});

test('a database whose tables belong to the administrator is taken over, and back, and over again', {
  timeout: 180_000,
}, async () => {
  const admin = await postgres.createDatabase('old');
  // As the last release left it: everything made by the one role there was.
  await useDatabase(admin, 'old');
  const [{ owner: administrator }] = (await query(admin, 'SELECT current_user AS owner')) as [{ owner: string }];
  expect(await query(admin, OWNERS)).toEqual([{ owner: administrator }]);
  const registry = await createServiceRole(admin, 'registry');
  expect(await query(admin, OWNERS)).toEqual([{ owner: 'registry' }]);
  await useDatabase(registry, 'upgraded');
  const count = 'SELECT count(*)::int AS count FROM registry.deliveries';
  expect(await query(registry, count)).toEqual([{ count: 2 }]);
  // After `helm rollback` the old release works on, and makes a table.
  await useDatabase(admin, 'rolled-back');
  await query(admin, 'CREATE TABLE registry.more (id int GENERATED ALWAYS AS IDENTITY)');
  const again = await createServiceRole(admin, 'registry');
  expect(await query(admin, OWNERS)).toEqual([{ owner: 'registry' }]);
  await query(again, 'ALTER TABLE registry.more ADD COLUMN name text', 'INSERT INTO registry.more (name) VALUES (1)');
  await useDatabase(again, 'again');
  // The role got another password.
  await expect(query(registry, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
});

test('the administrator is no service', async () => {
  const admin = await postgres.createDatabase('mistaken');
  await expect(createServiceRole(admin, new URL(admin).username)).rejects.toThrow(/cannot have the role/);
});
