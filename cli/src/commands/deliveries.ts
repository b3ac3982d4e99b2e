import { type DeliveryState, deliveryStates } from '@rollcall/client/delivery-types.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { type Command, Option } from 'commander';
import { connectionOf, oneOf, parseCount, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { formatDeliveries, formatDelivery } from '../output/deliveries.ts';
import { printable } from '../output/text.ts';
import { addSecretOption, secretOf } from '../secret.ts';

interface ListOptions {
  readonly state?: DeliveryState;
  readonly limit?: number;
}

const EXAMPLE_ID = '3f0c9a52-6c1e-4d0b-9b57-2f6a1d8e4c11';

/** `rollcall deliveries`, `delivery` and `replay`. */
export function addNotificationCommands(program: Command, deps: CliDeps): void {
  addListCommand(program, deps);
  addShowCommand(program, deps);
  addReplayCommand(program, deps);
}

function addListCommand(program: Command, deps: CliDeps): void {
  withExamples(
    program
      .command('deliveries')
      .description('list notifications to channels, newest first, of all services or of one')
      .argument('[service]', 'name of the service')
      .addOption(oneOf(new Option('--state <state>', 'only those in it; dead: given up'), deliveryStates))
      .option('--limit <count>', 'at most so many', parseCount),
    ['rollcall deliveries', 'rollcall deliveries shop --state dead', 'rollcall deliveries -o json'],
  ).action(async function (this: Command, service: string | undefined) {
    const { state, limit }: ListOptions = this.opts();
    const client = createRegistryClient(connectionOf(this, deps));
    const body = await client.listDeliveries({ service_name: service, state, limit });
    if (body.deliveries.length === 0) deps.err('There are no such notifications.\n');
    printResult(this, deps, {
      body,
      asText: ({ deliveries }) => (deliveries.length === 0 ? '' : formatDeliveries(deliveries, deps.now())),
    });
  });
}

function addShowCommand(program: Command, deps: CliDeps): void {
  withExamples(
    program
      .command('delivery')
      .description('show one notification and how far it has come')
      .argument('<delivery>', 'id of the notification'),
    [`rollcall delivery ${EXAMPLE_ID}`, `rollcall delivery ${EXAMPLE_ID} -o json | jq .payload`],
  ).action(async function (this: Command, id: string) {
    const body = await createRegistryClient(connectionOf(this, deps)).getDelivery(id);
    printResult(this, deps, { body, asText: (delivery) => formatDelivery(delivery, deps.now()) });
  });
}

function addReplayCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('replay')
    .description('send a notification again, as the same message, to where its channel leads now')
    .argument('<delivery>', 'id of the notification');
  withExamples(addSecretOption(command), [
    `rollcall replay ${EXAMPLE_ID}`,
    "rollcall deliveries --state dead -o json | jq -r '.deliveries[].id' | xargs -n 1 rollcall replay",
  ]).action(async function (this: Command, id: string) {
    const secret = secretOf(this, deps);
    const body = await createRegistryClient(connectionOf(this, deps)).replayDelivery(id, { secret });
    printResult(this, deps, { body, asText: (accepted) => `Notification ${printable(accepted.id)} is sent again\n` });
  });
}
