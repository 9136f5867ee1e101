/* What Numba's machine code would call where a Python function raises an exception. None of bhemu's compiled functions
 * does, and there is no Python in the process: a call is a mistake in bhemu, and ends the process with a message. */

#include <stdio.h>
#include <stdlib.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define STUB(name) \
    HIDDEN void name(void); \
    void name(void) { stop(#name); }
#define DATA(name) HIDDEN void *name;

static void stop(const char *name)
{
    printf("[0] ERROR: AssertionFailure: bhemu: compiled code has called %s\n", name);
    fflush(stdout);
    abort();
}

STUB(PyBytes_FromStringAndSize)
STUB(PyErr_Clear)
STUB(PyErr_Format)
STUB(PyErr_Occurred)
STUB(PyErr_Print)
STUB(PyErr_SetNone)
STUB(PyErr_SetString)
STUB(PyErr_WriteUnraisable)
STUB(PyUnicode_FromString)
STUB(PyUnicode_FromStringAndSize)
STUB(Py_DecRef)
STUB(Py_IncRef)
STUB(numba_do_raise)
STUB(numba_gil_ensure)
STUB(numba_gil_release)
STUB(numba_runtime_build_excinfo_struct)
STUB(numba_unpickle)
DATA(PyExc_RuntimeError)
DATA(PyExc_StopIteration)
DATA(PyExc_SystemError)
DATA(PyExc_ValueError)
DATA(PyExc_ZeroDivisionError)
