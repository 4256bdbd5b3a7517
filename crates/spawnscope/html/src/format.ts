// Formats figures like spawnscope's other outputs: three digits and a unit, or `-` if unknown.

export function time(nanos: number | null | undefined): string {
  if (nanos === null || nanos === undefined || Number.isNaN(nanos)) return "-";
  const units: [string, number][] = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];
  for (const [name, size] of units) {
    const value = nanos / size;
    if (roundToThreeDigits(value) < 1000 || name === "s") return `${digits(value)} ${name}`;
  }
  return "-";
}

function roundToThreeDigits(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(3));
}

function digits(value: number): string {
  if (value === 0) return "0";
  return value >= 999.5 ? count(Math.round(value)) : value.toPrecision(3);
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

export function launches(number: number): string {
  return `${count(number)} ${number === 1 ? "launch" : "launches"}`;
}

export function percent(part: number, whole: number): string {
  if (!(whole > 0) || Number.isNaN(part)) return "-";
  return `${((100 * part) / whole).toFixed(1)} %`;
}

/** Describes how a process ended, from its number in the column `outcome`. Returns an empty string for success. */
export function outcome(number: number): string {
  if (number === 0) return "";
  if (number === 1) return "running";
  if (number === 2) return "exit -";
  return number % 2 ? `exit ${(number - 3) / 2}` : `signal ${(number - 4) / 2}`;
}
