import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import { type FastifyError, fastify, type InjectOptions } from 'fastify';
import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { describeSchemaFaults } from './schema-faults.ts';

const Colour = Type.Enum(['red', 'dark blue']);
const app = fastify({ schemaErrorFormatter: describeSchemaFaults }).setValidatorCompiler(TypeBoxValidatorCompiler);
const body = Type.Object({
  colour: Type.Optional(Colour),
  colours: Type.Optional(Type.Array(Colour)),
  action: Type.Optional(Type.Literal('replay')),
  count: Type.Optional(Type.Integer()),
});
app.post('/', { schema: { body } }, () => 'taken');
app.get('/', { schema: { querystring: Type.Object({ colour: Type.Optional(Colour) }) } }, () => 'taken');

async function faultOf(request: InjectOptions | string): Promise<string> {
  const answer = await app.inject(request);
  expect(answer.statusCode).toBe(400);
  return answer.json<FastifyError>().message;
}

test.each([
  [{ colour: 'green' }, "body/colour must be equal to one of the allowed values: 'red', 'dark blue'"],
  [{ colours: ['red', 5] }, "body/colours/1 must be equal to one of the allowed values: 'red', 'dark blue'"],
  [{ action: 'play' }, "body/action must be equal to constant: 'replay'"],
  [{ count: 'x' }, 'body/count must be integer'],
])('%j: %s', async (payload, fault) => {
  expect(await faultOf({ method: 'POST', url: '/', payload })).toBe(fault);
});

test('also in a query', async () => {
  const fault = "querystring/colour must be equal to one of the allowed values: 'red', 'dark blue'";
  expect(await faultOf('/?colour=green')).toBe(fault);
});
