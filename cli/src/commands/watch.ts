import { type Directory, discover, type ServiceChange } from '@rollcall/client/discovery.ts';
import { RegistryError } from '@rollcall/client/registry-error.ts';
import type { ServiceFilter, ServiceRecord } from '@rollcall/client/registry-types.ts';
import type { Command } from 'commander';
import { addFilterOptions, connectionOf, wantsJson, withExamples } from '../command.ts';
import type { CliDeps } from '../deps.ts';
import { cell, formatRow } from '../output/table.ts';
import { printable } from '../output/text.ts';

/** `rollcall watch`. */
export function addWatchCommand(program: Command, deps: CliDeps): void {
  withExamples(
    addFilterOptions(
      program
        .command('watch')
        .description('list the registered services, then follow changes until interrupted; -o json: one object a line'),
    ),
    ['rollcall watch', 'rollcall watch --prefix shop-', 'rollcall watch -o json | jq \'select(.type == "expired")\''],
  ).action(async function (this: Command) {
    const filter: ServiceFilter = this.opts();
    const directory = discover(connectionOf(this, deps));
    const format = wantsJson(this) ? formatJsonLine : changeTable(deps);
    directory.on('change', (change) => {
      if (concerns(change, filter)) deps.out(format(change));
    });
    try {
      await neverReached(directory, deps);
    } finally {
      directory.close();
    }
  });
}

/** A service that leaves the filter is of interest too. */
function concerns({ service, previous }: ServiceChange, filter: ServiceFilter): boolean {
  return matches(service, filter) || (previous !== undefined && matches(previous, filter));
}

function matches(service: ServiceRecord, { capability, prefix = '' }: ServiceFilter): boolean {
  return (
    (capability === undefined || service.capabilities.includes(capability)) && service.service_name.startsWith(prefix)
  );
}

function formatJsonLine({ type, service }: ServiceChange): string {
  return `${JSON.stringify({ type, service })}\n`;
}

/** Rows come one by one: the widths are guesses that most names and URLs fit. */
const WIDTHS = [8, 8, 24, 36, 0];

function changeTable({ out, now }: CliDeps): (change: ServiceChange) => string {
  out(formatRow(['TIME', 'EVENT', 'NAME', 'URL', 'CAPABILITIES'], WIDTHS));
  return ({ type, service }) => {
    const { service_name, service_url, capabilities } = service;
    const time = now().toTimeString().slice(0, 8);
    return formatRow([time, type, cell(service_name), cell(service_url), cell(capabilities.join(','))], WIDTHS);
  };
}

/** Rejects when no registry could be reached at all; later losses are only printed. */
function neverReached(directory: Directory, { err }: CliDeps): Promise<never> {
  return new Promise((_, reject) => {
    let isConnected = false;
    let wasConnected = false;
    directory.on('connected', () => {
      if (wasConnected && !isConnected) err('rollcall: connected again\n');
      isConnected = true;
      wasConnected = true;
    });
    directory.on('disconnected', ({ error }) => {
      if (!wasConnected) reject(error);
      else if (isConnected) err(`rollcall: ${describe(error)}; trying to connect again\n`);
      isConnected = false;
    });
  });
}

function describe(error: unknown): string {
  return printable(error instanceof RegistryError ? error.message : String(error));
}
