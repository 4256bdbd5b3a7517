"""Launches from all kinds of Python code. The first argument is a program that ends at once; each launch passes its own name
to the program. A comment marks each line that is in the call chain of a launch, so that the test finds its number."""
import asyncio
import functools
import importlib
import multiprocessing
import os
import subprocess
import sys
import threading

TINY = sys.argv[1]


def function():
    subprocess.run([TINY, "function"], check=True)  # function


class Builder:
    def method(self):
        subprocess.Popen([TINY, "method"]).wait()  # method

    @classmethod
    def decorated(cls):
        def inner():
            subprocess.call([TINY, "nested"])  # nested: inner

        inner()  # nested: outer


def over_lines():
    subprocess.run(  # over lines
        [
            TINY,
            "over lines",
        ],
        check=True,
    )


def generator_expression():
    launches = (
        subprocess.call([TINY, name])  # generator expression: inside
        for name in ["generator expression"]
    )
    return sum(launches)  # generator expression: outside


def generator():
    try:
        yield subprocess.call([TINY, "generator"])  # generator: inside
    finally:
        pass


def consume():
    for _ in generator():  # generator: outside
        pass


async def coroutine():
    subprocess.call([TINY, "coroutine"])  # coroutine


def forking():
    child = os.fork()  # os.fork
    if child == 0:
        os.execv(TINY, [TINY, "os.fork"])
    os.waitpid(child, 0)


def system():
    os.system(f"{TINY} os.system; :")  # os.system


def spawn():
    os.waitpid(os.posix_spawn(TINY, [TINY, "os.posix_spawn"], {}), 0)  # os.posix_spawn


def shell():
    subprocess.call(f"{TINY} shell; :", shell=True)  # shell


def piped():
    with os.popen(f"{TINY} os.popen; :") as pipe:  # os.popen
        pipe.read()


def hook():
    subprocess.call([TINY, "in preexec_fn"])  # in preexec_fn: hook


def with_hook():
    subprocess.call([TINY, "preexec_fn"], preexec_fn=hook)  # preexec_fn


def worker(name):
    subprocess.call([TINY, name])  # thread


def threads():
    started = [threading.Thread(target=worker, args=[f"thread {number}"]) for number in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def behind_threads():
    """Python's list of threads starts with the newest, so this thread is the last one."""
    done = threading.Event()
    idle = [threading.Thread(target=done.wait) for _ in range(100)]
    for thread in idle:
        thread.start()
    subprocess.call([TINY, "behind threads"])  # behind threads
    done.set()
    for thread in idle:
        thread.join()


def process():
    subprocess.call([TINY, "multiprocessing"])  # multiprocessing: inside


def forked_process():
    child = multiprocessing.get_context("fork").Process(target=process)
    child.start()  # multiprocessing: outside
    child.join()


def recursion(depth):
    if depth:
        recursion(depth - 1)  # deep: call
    else:
        subprocess.call([TINY, "deep"])  # deep: end


def with_handlers():
    try:
        raise KeyError("x")
    except KeyError:
        with open(os.devnull):
            subprocess.call([TINY, "handler"])  # handler


class Manager:
    def __enter__(self):
        subprocess.call([TINY, "enter"])  # enter: inside

    def __exit__(self, *_):
        subprocess.call([TINY, "leave"])  # leave: inside


def managed():
    with Manager():  # enter, leave: outside
        pass  # leave: outside in 3.9


def compiled():
    """Each time, other code is at the same addresses, and the launch is on another line."""
    for line in range(1, 31):
        text = "\n" * (line - 1) + f"import subprocess; subprocess.call([{TINY!r}, 'compiled {line}'])"
        exec(compile(text, "compiled.py", "exec"))  # compiled: exec


def names():
    """Names with characters of every width, and a file name that is not valid UTF-8."""
    for number, (name, file) in enumerate([("réunion", "é.py"), ("ветка", "ж.py"), ("𠀀", "🐍.py"), ("plain", "\udcff.py")]):
        text = f"def {name}():\n  subprocess.call([{TINY!r}, 'name {number}'])\n{name}()"
        exec(compile(text, file, "exec"), {"subprocess": subprocess})  # names: exec


def long_table():
    """The line table is longer than the part that the recorder copies, but early lines are known."""
    text = f"import subprocess\nsubprocess.call([{TINY!r}, 'early'])\n" + "a = 1; b = 2\n" * 5000
    exec(compile(text + f"subprocess.call([{TINY!r}, 'late'])", "long.py", "exec"))  # long_table: exec


def long_name():
    exec(compile(f"import subprocess; subprocess.call([{TINY!r}, 'long name'])", "x" * 5000, "exec"))  # long_name: exec


def several_interpreters():
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    try:
        interpreters = importlib.import_module(name)
    except ImportError:  # the module may need symbols that the test has hidden
        return
    other = interpreters.create()
    subprocess.call([TINY, "several interpreters"])
    interpreters.destroy(other)


function()  # main: function
Builder().method()  # main: method
Builder.decorated()  # main: nested
over_lines()  # main: over lines
generator_expression()  # main: generator expression
consume()  # main: generator
asyncio.run(coroutine())  # main: coroutine
forking()  # main: os.fork
system()  # main: os.system
spawn()  # main: os.posix_spawn
shell()  # main: shell
piped()  # main: os.popen
with_hook()  # main: preexec_fn
threads()
behind_threads()  # main: behind threads
forked_process()  # main: multiprocessing
recursion(60)
with_handlers()  # main: handler
managed()  # main: managed
compiled()  # main: compiled
names()  # main: names
long_table()  # main: long_table
long_name()  # main: long_name
several_interpreters()
functools.partial(subprocess.call, [TINY, "partial"])()  # partial
(lambda: subprocess.call([TINY, "lambda"]))()  # lambda
subprocess.call([TINY, "module"])  # module
