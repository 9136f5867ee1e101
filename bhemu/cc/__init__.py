"""Kernels in C, C++ and assembly, with a stock RISC-V compiler: `bhemu cc`."""

from bhemu.cc.build import Kernel, compile_kernel
from bhemu.cc.errors import CompileError, MissingTool
from bhemu.cc.header import fields_header, instructions_header
from bhemu.cc.llk import LlkTree, find_llk
from bhemu.cc.toolchain import Toolchain, find_toolchain
from bhemu.cc.vendor import write_vendor_tools
from bhemu.cc.views import write_llk_home, write_metal_root

__all__ = [
    "CompileError",
    "Kernel",
    "LlkTree",
    "MissingTool",
    "Toolchain",
    "compile_kernel",
    "fields_header",
    "find_llk",
    "find_toolchain",
    "instructions_header",
    "write_llk_home",
    "write_metal_root",
    "write_vendor_tools",
]
