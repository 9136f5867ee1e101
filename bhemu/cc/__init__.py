"""Kernels in C, C++ and assembly, with the vendor's compiler or a stock one: `bhemu cc`."""

from bhemu.cc.build import Kernel, compile_kernel
from bhemu.cc.errors import CompileError, MissingTool
from bhemu.cc.header import fields_header, instructions_header
from bhemu.cc.llk import LlkTree, find_llk
from bhemu.cc.sfpi import Sfpi, find_sfpi
from bhemu.cc.toolchain import Toolchain, choose_compiler, find_toolchain
from bhemu.cc.vendor import write_vendor_tools
from bhemu.cc.views import write_llk_home, write_metal_root

__all__ = [
    "CompileError",
    "Kernel",
    "LlkTree",
    "MissingTool",
    "Sfpi",
    "Toolchain",
    "choose_compiler",
    "compile_kernel",
    "fields_header",
    "find_llk",
    "find_sfpi",
    "find_toolchain",
    "instructions_header",
    "write_llk_home",
    "write_metal_root",
    "write_vendor_tools",
]
