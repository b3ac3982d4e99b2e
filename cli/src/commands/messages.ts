import { type Command, Option } from 'commander';
import { parseCount, printPage, printResult, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { addGatewayOption, gatewayOf } from '../gateway.ts';
import { formatMessage, formatMessages, type MessageDetails, type MessageRecord } from '../output/messages.ts';
import { queryOf } from '../query.ts';

const PATH = '/communication/messages';

interface MessagePage {
  readonly messages: readonly MessageRecord[];
  readonly nextCursor: string | null;
}

/** `rollcall messages`, `message`, `retry-message` and `cancel-message`. */
export function addMessageCommands(program: Command, deps: CliDeps): void {
  addListCommand(program, deps);
  addShowCommand(program, deps);
  addChangingCommand(program, deps, {
    action: 'retry',
    description: 'send a message again that failed, or that is unknown and may then arrive twice',
  });
  addChangingCommand(program, deps, {
    action: 'cancel',
    description: 'keep a message that is scheduled or queued from being sent',
  });
}

function addListCommand(program: Command, deps: CliDeps): void {
  const command = program.command('messages').description('list mails, SMS and push messages, newest first');
  withExamples(
    addGatewayOption(command)
      .addOption(new Option('--channel <channel>', 'only of it').choices(['email', 'sms', 'push']))
      .option('--status <status>', 'only in it, such as failed')
      .option('--to <recipient>', 'only to this recipient')
      .option('--tag <tag>', 'only with it')
      .option('--limit <count>', 'at most so many; 20 by default', parseCount),
    ['rollcall messages --status failed', 'rollcall messages --to ada@example.com -o json'],
  ).action(async function (this: Command) {
    const { channel, status, to, tag, limit } = this.opts();
    const path = `${PATH}${queryOf({ channel, status, to, tag, limit })}`;
    const body = await gatewayOf(this, deps).call<MessagePage>({ method: 'GET', path });
    printPage(this, deps, {
      body,
      rows: body.messages,
      what: 'messages',
      asText: (messages) => formatMessages(messages, deps.now()),
    });
  });
}

function addShowCommand(program: Command, deps: CliDeps): void {
  const command = program.command('message').description('show one message and each attempt to send it');
  withExamples(addGatewayOption(command).argument('<message>', 'id of the message'), [
    'rollcall message 0869137e-ee3f-42c9-92e8-768c4286b260',
  ]).action(async function (this: Command, id: string) {
    const path = `${PATH}/${encodeURIComponent(id)}`;
    const body = await gatewayOf(this, deps).call<MessageDetails>({ method: 'GET', path });
    printResult(this, deps, { body, asText: (message) => formatMessage(message, deps.now()) });
  });
}

interface Changing {
  readonly action: 'retry' | 'cancel';
  readonly description: string;
}

function addChangingCommand(program: Command, deps: CliDeps, { action, description }: Changing): void {
  const name = `${action}-message`;
  const command = program.command(name).description(description);
  withExamples(addGatewayOption(command).argument('<message>', 'id of the message'), [
    `rollcall ${name} 0869137e-ee3f-42c9-92e8-768c4286b260`,
  ]).action(async function (this: Command, id: string) {
    const path = `${PATH}/${encodeURIComponent(id)}/${action}`;
    const body = await gatewayOf(this, deps).call<MessageRecord>({ method: 'POST', path });
    printResult(this, deps, { body, asText: (message) => formatMessages([message], deps.now()) });
  });
}
