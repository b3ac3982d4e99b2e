import type { SealedTable } from '@rollcall/platform/postgres/resealing.ts';
import type { BlindIndex } from '@rollcall/platform/vault.ts';
import type { Envelope } from '../domain/messages.ts';
import { foldedRecipient } from '../domain/recipients.ts';
import { type DeviceDetails, deviceContext, keyOf, SAME_DEVICE } from './devices.ts';
import { contentContext, envelopeContext } from './message-rows.ts';
import { notificationContext, reportContext } from './reports.ts';
import { SAME_SUPPRESSION, suppressionContext } from './suppressions.ts';

interface Indexes {
  readonly recipients: BlindIndex;
  readonly devices: BlindIndex;
  /** Of devices. */
  readonly users: BlindIndex;
}

/** Where the vault's seals are. Tokens of devices that are gone are sealed nowhere, and forgotten after 180 days. */
export function sealedTables({ recipients, devices, users }: Indexes): readonly SealedTable[] {
  return [
    {
      table: 'messages',
      sealed: { envelope: envelopeContext, content: contentContext },
      indexes: [{ column: 'recipient', index: recipients, of: 'envelope', textOf: recipientOf }],
    },
    { table: 'notifications', sealed: { body: notificationContext } },
    { table: 'reports', sealed: { content: reportContext } },
    {
      table: 'suppressions',
      sealed: { recipient: suppressionContext },
      indexes: [
        {
          column: SAME_SUPPRESSION.column,
          uniqueWith: SAME_SUPPRESSION.uniqueWith,
          isTwinForgotten: true,
          index: recipients,
          of: 'recipient',
          textOf: foldedRecipient,
        },
      ],
    },
    {
      table: 'devices',
      sealed: { details: deviceContext },
      indexes: [
        {
          column: SAME_DEVICE.column,
          uniqueWith: SAME_DEVICE.uniqueWith,
          isTwinForgotten: true,
          index: devices,
          of: 'details',
          textOf: deviceOf,
        },
        { column: 'user_index', index: users, of: 'details', textOf: userOf },
      ],
    },
  ];
}

function recipientOf(envelope: string): string {
  const { to }: Envelope = JSON.parse(envelope);
  return foldedRecipient(to);
}

function deviceOf(details: string): string {
  const { target }: DeviceDetails = JSON.parse(details);
  return keyOf(target);
}

function userOf(details: string): string | undefined {
  const { user }: DeviceDetails = JSON.parse(details);
  return user;
}
