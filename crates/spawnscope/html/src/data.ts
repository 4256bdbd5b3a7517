// Unpacks the data of the page: columns of numbers and strings, as crates/spawnscope/src/present/html/pack.rs writes them.

export interface Group {
  label: string;
  count: number;
  total: number | null;
  mean: number | null;
  tax: number | null;
  critical: number | null;
  failed: number;
  inclusive: number | null;
  inclusive_critical: number | null;
  phases: (number | null)[];
  launched: string;
  callers: string;
}

export interface Header {
  columns: Record<string, [offset: number, length: number, count: number, isDelta: number]>;
  unit_ns: number;
  wall_ns: number;
  end_ns: number;
  unrecorded_ns: number;
  cpus: number;
  launches: number;
  has_path: boolean;
  file: string | null;
  phases: { name: string; causes: string }[];
  tables: Record<string, { rows: Group[]; omitted: number }>;
  waits: { command: string; sentence: string; count: number; total: number }[];
  waits_omitted: number;
  removals: { by: string; label: string; launches: number; saving: number[] }[];
  advice: number[][];
  flames: { name: string; stacking: string; weight: string; total: number }[];
}

/** The rows of the timeline, ordered by start. Times are in nanoseconds, and NaN is unknown. */
export class Data {
  readonly rows: number;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly lane: Float64Array;
  readonly lanes: number;
  /** The row of the parent, or -1. */
  readonly parent: Int32Array;
  /** The number of launches that the row stands for. */
  readonly count: Float64Array;
  readonly total: Float64Array;
  readonly phases: Float64Array[];
  readonly critical: Float64Array;
  readonly command: Float64Array;
  readonly args: Float64Array;
  readonly line: Float64Array;
  readonly launcher: Float64Array;
  readonly args_row: Float64Array;
  readonly outcome: Float64Array;
  private readonly textBytes: Uint8Array;
  private readonly textEnds: Float64Array;
  private readonly decoder = new TextDecoder();
  private childrenOf: Int32Array | null = null;
  private firstChild: Int32Array | null = null;

  constructor(
    readonly header: Header,
    private readonly bytes: Uint8Array,
  ) {
    const unit = header.unit_ns;
    this.start = this.numbers("start").map((at) => at * unit);
    this.rows = this.start.length;
    this.lane = this.numbers("lane");
    this.lanes = this.lane.reduce((lanes, lane) => Math.max(lanes, lane + 1), 0);
    this.parent = Int32Array.from(this.numbers("parent"), (distance, row) => (distance ? row - unzigzag(distance) : -1));
    this.count = this.numbers("count");
    this.phases = header.phases.map((phase) => this.times(phase.name));
    const phaseSums = new Float64Array(this.rows);
    for (const phase of this.phases) phase.forEach((span, row) => (phaseSums[row] += (span || 0) / unit));
    const total = this.differences("total", phaseSums);
    this.total = asTimes(total, unit);
    this.critical = asTimes(this.differences("critical", total), unit);
    this.end = this.differences("span", total).map((span, row) => this.start[row] + span * unit);
    this.command = this.numbers("command");
    this.args = this.numbers("args");
    this.line = this.numbers("line");
    this.launcher = this.numbers("launcher");
    this.args_row = this.numbers("args_row");
    this.outcome = this.numbers("outcome");
    this.textEnds = this.numbers("text_lengths");
    for (let text = 1; text < this.textEnds.length; text++) this.textEnds[text] += this.textEnds[text - 1];
    const [offset, length] = header.columns["text_bytes"];
    this.textBytes = bytes.subarray(offset, offset + length);
  }

  /** Returns a column, or an empty one if this recording has none. */
  numbers(name: string): Float64Array<ArrayBuffer> {
    const column = this.header.columns[name];
    if (!column) return new Float64Array(0);
    const [offset, , count, isDelta] = column;
    const numbers = new Float64Array(count);
    const bytes = this.bytes;
    let position = offset;
    let previous = 0;
    for (let index = 0; index < count; index++) {
      let number = 0;
      let scale = 1;
      let byte: number;
      do {
        byte = bytes[position++];
        number += (byte & 0x7f) * scale;
        scale *= 128;
      } while (byte & 0x80);
      if (isDelta) number = previous += unzigzag(number);
      numbers[index] = number;
    }
    return numbers;
  }

  /** Returns a column of times, some of which may be unknown. */
  times(name: string): Float64Array {
    return asTimes(this.numbers(`known_${name}`), this.header.unit_ns);
  }

  /** Returns a column of numbers that are stored as differences from other numbers. */
  private differences(name: string, others: Float64Array): Float64Array<ArrayBuffer> {
    return this.numbers(name).map((difference, row) => Math.round(others[row]) + unzigzag(difference));
  }

  get texts(): number {
    return this.textEnds.length;
  }

  text(number: number): string {
    if (!number) return "";
    return this.decoder.decode(this.textBytes.subarray(this.textEnds[number - 1], this.textEnds[number]));
  }

  /** Returns the launch tax of a row: all phases but run. */
  tax(row: number): number {
    let sum = 0;
    this.phases.forEach((phase, index) => {
      if (this.header.phases[index].name !== "run" && phase[row] > 0) sum += phase[row];
    });
    return sum;
  }

  /** Returns the rows of the children of a row, or the topmost rows for -1. */
  children(row: number): Int32Array {
    if (!this.firstChild || !this.childrenOf) {
      this.firstChild = new Int32Array(this.rows + 2);
      for (const parent of this.parent) this.firstChild[parent + 2]++;
      for (let index = 1; index < this.firstChild.length; index++) this.firstChild[index] += this.firstChild[index - 1];
      const next = this.firstChild.slice();
      this.childrenOf = new Int32Array(this.rows);
      this.parent.forEach((parent, child) => (this.childrenOf![next[parent + 1]++] = child));
    }
    return this.childrenOf.subarray(this.firstChild[row + 1], this.firstChild[row + 2]);
  }
}

/** Converts stored numbers to times. Known times are stored plus 1, and 0 is unknown. */
function asTimes(numbers: Float64Array<ArrayBuffer>, unit: number): Float64Array {
  return numbers.map((number) => (number > 0 ? (number - 1) * unit : NaN));
}

function unzigzag(number: number): number {
  return number % 2 ? -(number + 1) / 2 : number / 2;
}

/** Decodes and unpacks the data in the element with this id. */
export async function unpack(id: string): Promise<Data> {
  const encoded = document.getElementById(id)?.textContent ?? "";
  const compressed = Uint8Array.from(atob(encoded.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Header;
  return new Data(header, bytes.subarray(4 + length));
}
