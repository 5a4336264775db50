"""JupyterLab as people open it, `./lab jupyter`, and Debian's Chromium to look at it; one server for a test process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

SHOTS = os.environ.get("PCCLAB_SHOTS")
"""Folder for a screenshot of every notebook; without it only a failure leaves one, in the test's own folder."""
OWN = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path; the test is skipped where there is none."""
    pytest.importorskip("playwright", reason="no playwright: ./lab test installs it, or pip install -e '.[dev]'")
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium on PATH: apt-get install chromium (Debian), or your system's package of it")


@pytest.fixture(scope="module")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser without a window, which leaves the user's own alone.

    Not for the whole session: as long as it is open, playwright has an event loop running in this thread, and a widget
    that is moved under one waits for it before it draws.
    """
    from playwright.sync_api import sync_playwright

    home = tmp_path_factory.mktemp("chromium")
    own: dict[str, str | float | bool] = {f"XDG_{name}_HOME": str(home / name) for name in ("CONFIG", "CACHE")}

    # Without /dev/shm's own file system a container gives Chromium 64 MiB there, and its tabs crash.
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium, args=flags, env={**os.environ, **own})
        yield opened
        opened.close()


class Server:
    """JupyterLab on a checkout of the test's own, in a folder whose name has a space, by the script `lab`."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.root, self.folder, self.token = folder / "a check out", folder, secrets.token_hex(16)
        self.root.mkdir()
        for name in ("notebooks", "parameters"):
            shutil.copytree(checkout / name, self.root / name)
        for name in ("lab", "pyproject.toml", "constraints.txt"):
            shutil.copy(checkout / name, self.root / name)
        self._settings()
        self.log = folder / "server.log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]  # a hint: where another process takes it, Jupyter takes one nearby
        command = [
            "/bin/sh",
            str(self.root / "lab"),
            "jupyter",
            "--no-browser",
            f"--IdentityProvider.token={self.token}",
        ]
        command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--LabApp.expose_app_in_browser=True"]
        # Should the tests be killed: the kernels end when they are idle, and then the server.
        command += ["--MappingKernelManager.cull_idle_timeout=900", "--ServerApp.shutdown_no_activity_timeout=900"]
        command += ["--allow-root"] if os.geteuid() == 0 else []
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=self._environment(checkout), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.url = self._url()

    def _environment(self, checkout: Path) -> dict[str, str]:
        """Nothing of the user's Jupyter, and an environment in which the script finds all installed already."""
        python = self.folder / "environment" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\ncase "$*" in *"-m pip "*) exit 0 ;; esac\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        hidden = ("PCCLAB_", "JUPYTER", "PYTEST_", "MPLBACKEND")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        own = {f"JUPYTER_{name}": str(self.folder / name.lower()) for name in OWN}
        own |= {f"JUPYTERLAB_{name}_DIR": str(self.folder / name.lower()) for name in ("SETTINGS", "WORKSPACES")}
        conda = {"CONDA_PREFIX": str(python.parent.parent), "CONDA_DEFAULT_ENV": "test"}
        own |= {"IPYTHONDIR": str(self.folder / "ipython"), "NPM_CONFIG_CACHE": str(self.folder / "npm")}
        return {**kept, **own, **conda, "PYTHONPATH": str(checkout)}

    def _settings(self) -> None:
        """No question about news in the way."""
        file = self.folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))

    def _url(self) -> str:
        # The script becomes the server: their process is one.
        told = self.folder / "runtime_dir" / f"jpserver-{self.process.pid}.json"
        for _ in range(600):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(
                OSError, ValueError
            ):  # the file is not there, half written, or ahead of the server
                found = json.loads(told.read_text(encoding="utf8"))
                with urllib.request.urlopen(f"{found['url']}api?token={self.token}", timeout=10):
                    return str(found["url"])
            time.sleep(0.2)
        log = self.log.read_text(encoding="utf8", errors="replace")[-3000:]
        self.end()
        raise RuntimeError(f"./lab jupyter did not start:\n{log}")

    def end(self) -> None:
        """End the server and whatever it started; nothing of it is left when this returns."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for one in family:
            if one.is_running():
                one.kill()
        psutil.wait_procs(family, timeout=20)


@pytest.fixture(scope="session")
def server(chromium: str, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The lab, open; each process of a shared-out test run has its own."""
    opened = Server(checkout, tmp_path_factory.mktemp("jupyter"))
    yield opened
    opened.end()


class Notebook:
    """A notebook open in JupyterLab."""

    def __init__(self, page: Any, name: str) -> None:
        self.page, self.name = page, name
        page.wait_for_function(
            """() => {
                const panel = window.jupyterapp?.shell?.currentWidget;
                return panel?.context?.isReady && panel.sessionContext?.session?.kernel?.status === 'idle';
            }""",
            timeout=120_000,
        )

    def run_all(self, *, seconds: float) -> None:
        """Run every cell as the menu does, and wait until all are done and the kernel is idle."""
        self.page.evaluate(
            """() => {
                window.ran = '';
                const done = window.jupyterapp.commands.execute('notebook:run-all-cells');
                done.then(() => { window.ran = 'done'; }, error => { window.ran = String(error); });
            }"""
        )
        self.page.wait_for_function("window.ran !== ''", timeout=1000 * seconds)
        assert self.page.evaluate("window.ran") == "done"
        status = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"
        self.page.wait_for_function(f"{status} === 'idle'", timeout=60_000)

    def cells(self) -> list[dict[str, Any]]:
        """Its cells with their outputs, as they would be saved."""
        model = "window.jupyterapp.shell.currentWidget.content.model.cells"
        return list(self.page.evaluate(f"() => Array.from({model}).map(cell => cell.toJSON())"))

    def faults(self) -> list[str]:
        """Whatever went wrong: cells that failed or did not run, widgets that do not show or tell an error."""
        found = []
        for number, cell in enumerate(self.cells()):
            if cell["cell_type"] != "code":
                continue
            if cell["source"] and cell["execution_count"] is None:
                found.append(f"cell {number} was not run")
            outputs = cell["outputs"]
            errors = [out for out in outputs if out["output_type"] == "error"]
            found += [f"cell {number}: {out['ename']}: {out['evalue']}" for out in errors]
            if any("application/vnd.jupyter.widget-view+json" in out.get("data", {}) for out in outputs):
                found += [f"cell {number}: widget: {told}" for told in self._broken_widgets(number)]
        return found

    def go_to(self, number: int) -> None:
        """Scroll to a cell: one that is out of sight is not drawn."""
        self.page.evaluate(f"() => window.jupyterapp.shell.currentWidget.content.scrollToItem({number}, 'start')")

    def _broken_widgets(self, number: int) -> list[str]:
        """What widgets of a cell show in place of themselves; a progress bar that is done rightly shows nothing."""
        self.go_to(number)
        cell = self.page.locator(f".jp-Cell[data-windowed-list-index='{number}']")
        cell.wait_for(state="attached")
        found = []
        if view := next((name for name, place in self.views().items() if place == number), ""):
            try:
                cell.locator(f".pcclab-view-{view}").wait_for(state="attached", timeout=20_000)
            except Exception:
                found = [f"{view} is not shown"]
        bad = cell.locator(".jupyter-widgets-error-widget, .jupyter-widgets [role=alert]")
        words = cell.locator(".jp-OutputArea-output").filter(has_text=re.compile("Error (displaying|creating) widget"))
        return [*found, *(str(text)[:300] for text in (*bad.all_inner_texts(), *words.all_inner_texts()))]

    def views(self) -> dict[str, int]:
        """The views under sliders, by name, with the number of their cell."""
        calls = {
            number: re.search(r"explore\((?:widgets\.)?(\w+)", cell["source"])
            for number, cell in enumerate(self.cells())
        }
        return {call[1]: number for number, call in calls.items() if call}

    def view(self, name: str) -> Any:
        """A view under sliders, in sight."""
        self.go_to(self.views()[name])
        found = self.page.locator(f".pcclab-view-{name}")
        found.scroll_into_view_if_needed()
        return found

    def said(self, view: str) -> str:
        """What a view says in words below its picture."""
        return str(self.view(view).locator(".pcclab-said").inner_text())

    def wait_for(self, view: str, until: str, *, seconds: float = 20) -> None:
        """Wait until a view says `until`."""
        self.page.wait_for_function(
            "([said, until]) => document.querySelector(said).innerText.includes(until)",
            arg=[f".pcclab-view-{view} .pcclab-said", until],
            timeout=1000 * seconds,
        )

    def move(self, view: str, slider: str, *, steps: int = 1, until: str, seconds: float = 20) -> None:
        """Move a slider of a view by keyboard and wait until the view says `until` and shows another picture."""
        whole = self.view(view)
        picture = whole.locator(".pcclab-picture")
        drawn = picture.get_attribute("src")
        handle = whole.locator(f".pcclab-{slider} .noUi-handle")
        handle.focus()
        for _ in range(abs(steps)):
            handle.press("ArrowRight" if steps > 0 else "ArrowLeft")
        self.wait_for(view, until, seconds=seconds)
        assert picture.get_attribute("src") != drawn, "the words changed and the picture did not"
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100

    def nudge(self, view: str) -> None:
        """Move a view's first slider by keyboard, or choose or type, until it and the view show another thing."""
        state = f"""() => {{
            const view = document.querySelector('.pcclab-view-{view}');
            const value = view.querySelector('.widget-readout, select, input');
            return [value.value ?? value.innerText, view.querySelector('.pcclab-said').innerText,
                    view.querySelector('.pcclab-picture').src];
        }}"""
        control = self.view(view).locator(".widget-hslider, .widget-dropdown, .widget-text").first
        before = self.page.evaluate(state)
        field = control.locator(".noUi-handle, select, input")
        if control.locator("select").count():  # the arrow keys of a closed list are JupyterLab's own
            field.select_option(index=0 if field.evaluate("list => list.selectedIndex") else 1)
        elif control.locator("input").count():
            field.fill("Nobody is there.")
            field.press("Enter")
        else:
            field.focus()
            field.press("ArrowRight")
        changed = f"before => ({state})().every((now, place) => now !== before[place])"
        self.page.wait_for_function(changed, arg=before, timeout=20_000)


Opening = Callable[[str], contextlib.AbstractContextManager[Notebook]]


@pytest.fixture
def opened(server: Server, browser: Any, tmp_path: Path) -> Opening:
    """Open a notebook by its name; what fails inside leaves a screenshot, and the error says where."""

    @contextlib.contextmanager
    def opening(name: str) -> Iterator[Notebook]:
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(30_000)
        page.on("dialog", lambda dialog: dialog.accept())
        shot = Path(SHOTS or tmp_path) / f"{name}.png"
        try:
            page.goto(f"{server.url}lab/workspaces/{name}/tree/notebooks/{name}.ipynb?token={server.token}")
            notebook = Notebook(page, name)
            yield notebook
            if SHOTS:
                page.screenshot(path=shot)
        except BaseException as error:
            page.screenshot(path=shot)
            error.add_note(f"screenshot: {shot}; the server's log: {server.log}")
            raise
        finally:
            # The kernel goes with its notebook: the next one has the memory.
            page.evaluate("async () => { await window.jupyterapp?.serviceManager?.sessions?.shutdownAll(); }")
            page.close()

    return opening
